#include "autograd/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/norm.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The mean of a row minus its rounded value `high`. Together they represent the mean so well that x − high − low is
// exactly 0 in a row of equal numbers. For float, the mean in double already has the digits; for double, the rounding
// error of `high` is the mean of the differences from it.
HWY_INLINE double mean_low_part(std::int64_t, const float*, double mean, float high) {
  return mean - static_cast<double>(high);
}
HWY_INLINE double mean_low_part(std::int64_t cols, const double* x, double, double high) {
  const hn::ScalableTag<double> d;
  const auto centre = hn::Set(d, high);
  const auto from_centre = [=](const auto& at, std::int64_t i) HWY_ATTR { return hn::Sub(at.Load(x + i), centre); };
  return sum_row<double>(cols, from_centre) / static_cast<double>(cols);
}

// One row of y = (x − mean) · rstd · weight + bias.
template <class T>
HWY_INLINE void layer_norm_forward_row(std::int64_t cols, const T* x, const T* weight, const T* bias, double eps, T* y,
                                       T* stats) {
  const hn::ScalableTag<T> d;
  const double mean = sum_row_in_double(cols, x) / static_cast<double>(cols);
  stats[0] = static_cast<T>(mean);
  const auto high = hn::Set(d, stats[0]);
  stats[1] = static_cast<T>(mean_low_part(cols, x, mean, stats[0]));
  const auto low = hn::Set(d, stats[1]);
  const double variance = sum_row<T>(cols,
                                     [=](const auto& at, std::int64_t i) HWY_ATTR {
                                       const auto centred = hn::Sub(hn::Sub(at.Load(x + i), high), low);
                                       return hn::Mul(centred, centred);
                                     }) /
                          static_cast<double>(cols);
  stats[2] = variance <= std::numeric_limits<double>::max() ? static_cast<T>(1 / std::sqrt(variance + eps))
                                                            : std::numeric_limits<T>::quiet_NaN();
  const auto rstd = hn::Set(d, stats[2]);
  for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    auto v = hn::Mul(hn::Sub(hn::Sub(at.Load(x + i), high), low), rstd);
    if (weight != nullptr) v = hn::Mul(v, at.Load(weight + i));
    if (bias != nullptr) v = hn::Add(v, at.Load(bias + i));
    at.Store(v, y + i);
  });
}

// The gradient of one row of y = x̂ · weight + bias with x̂ = (x − mean) · rstd, see norm.h. partial [2, cols], or null,
// accumulates Σ dy · x̂ and Σ dy over the rows of a block.
template <class T>
HWY_INLINE void layer_norm_backward_row(std::int64_t cols, const T* x, const T* weight, const T* stats, const T* dy,
                                        Sink<T> dx, T* partial) {
  const hn::ScalableTag<T> d;
  const auto high = hn::Set(d, stats[0]), low = hn::Set(d, stats[1]), rstd = hn::Set(d, stats[2]);
  const TwoSums sums = sum_row_pair<T>(cols, [=](const auto& at, std::int64_t i, auto& g, auto& g_normal) HWY_ATTR {
    const auto normal = hn::Mul(hn::Sub(hn::Sub(at.Load(x + i), high), low), rstd);
    g = at.Load(dy + i);
    if (partial != nullptr) {
      at.Store(hn::MulAdd(g, normal, at.Load(partial + i)), partial + i);
      at.Store(hn::Add(g, at.Load(partial + cols + i)), partial + cols + i);
    }
    if (weight != nullptr) g = hn::Mul(g, at.Load(weight + i));
    g_normal = hn::Mul(g, normal);
  });
  if (!dx) return;
  const auto mean_g = hn::Set(d, static_cast<T>(sums.a / static_cast<double>(cols)));
  const auto mean_g_normal = hn::Set(d, static_cast<T>(sums.b / static_cast<double>(cols)));
  for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    const auto normal = hn::Mul(hn::Sub(hn::Sub(at.Load(x + i), high), low), rstd);
    auto g = at.Load(dy + i);
    if (weight != nullptr) g = hn::Mul(g, at.Load(weight + i));
    put_vector(at, dx, i, hn::Mul(rstd, hn::NegMulAdd(normal, mean_g_normal, hn::Sub(g, mean_g))));
  });
}

template <class T>
void layer_norm_forward_rows(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* bias,
                             double eps, T* y, T* stats) {
  for (std::int64_t i = 0; i < rows; ++i) {
    layer_norm_forward_row(cols, x + i * cols, weight, bias, eps, y + i * cols, stats + i * kLayerNormStats);
  }
}

template <class T>
void layer_norm_backward_rows(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* stats,
                              const T* dy, Sink<T> dx, T* partial) {
  if (partial != nullptr) std::fill(partial, partial + 2 * cols, T{0});
  for (std::int64_t i = 0; i < rows; ++i) {
    const Sink<T> row{dx ? dx.data + i * cols : nullptr, dx.add};
    layer_norm_backward_row(cols, x + i * cols, weight, stats + i * kLayerNormStats, dy + i * cols, row, partial);
  }
}

MAKI_KERNEL(layer_norm_forward_rows);
MAKI_KERNEL(layer_norm_backward_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(layer_norm_forward_rows);
MAKI_EXPORT(layer_norm_backward_rows);

// Rows per task of backward. Each task sums its rows' share of dweight and dbias, and the shares are added in order, so
// the bits of both depend on this number. Smaller blocks make more shares to add, larger ones fewer tasks: 24 of the
// 768 rows of the quick start.
constexpr std::int64_t kBlockRows = 32;
constexpr std::int64_t kRowWork = 32;  // rough cost per row besides its elements, in elementary operations (parallel.h)

// sums[j] (+)= Σ_block shares[block · 2 cols + j], in the order of the blocks.
template <class T>
void combine(std::int64_t blocks, std::int64_t cols, const T* shares, Sink<T> sums) {
  constexpr std::int64_t kTaskColumns = 64;  // whole cache lines of the result; its totals are 512 bytes on the stack
  parallel_for(ceil_div(cols, kTaskColumns), blocks * kTaskColumns, [&](std::int64_t tile) {
    const std::int64_t begin = tile * kTaskColumns, n = std::min(kTaskColumns, cols - begin);
    double totals[kTaskColumns] = {};
    for (std::int64_t block = 0; block < blocks; ++block) {
      const T* const share = shares + block * 2 * cols + begin;
      for (std::int64_t j = 0; j < n; ++j) totals[j] += static_cast<double>(share[j]);
    }
    for (std::int64_t j = 0; j < n; ++j) sums.put(begin + j, static_cast<T>(totals[j]));
  });
}

}  // namespace

template <class T>
void layer_norm_forward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* bias, double eps,
                        T* y, T* stats) {
  const auto kernel = MAKI_DISPATCH(layer_norm_forward_rows, T);
  parallel_ranges(rows, 2 * cols + kRowWork, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin, at = begin * cols;
    T* const row_stats = stats + begin * kLayerNormStats;
    kernel(n, cols, x + at, weight, bias, eps, y + at, row_stats);
  });
}
template void layer_norm_forward(std::int64_t, std::int64_t, const float*, const float*, const float*, double, float*,
                                 float*);
template void layer_norm_forward(std::int64_t, std::int64_t, const double*, const double*, const double*, double,
                                 double*, double*);

std::int64_t layer_norm_backward_scratch(std::int64_t rows, std::int64_t cols) {
  return ceil_div(rows, kBlockRows) * 2 * cols;
}

template <class T>
void layer_norm_backward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* stats, const T* dy,
                         Sink<T> dx, Sink<T> dweight, Sink<T> dbias, T* scratch) {
  const auto kernel = MAKI_DISPATCH(layer_norm_backward_rows, T);
  const std::int64_t blocks = ceil_div(rows, kBlockRows);
  const bool shares = dweight || dbias;
  parallel_for(blocks, kBlockRows * (3 * cols + kRowWork), [&](std::int64_t block) {
    const std::int64_t begin = block * kBlockRows, n = std::min(rows - begin, kBlockRows), at = begin * cols;
    const Sink<T> block_dx{dx ? dx.data + at : nullptr, dx.add};
    const T* const row_stats = stats + begin * kLayerNormStats;
    T* const partial = shares ? scratch + block * 2 * cols : nullptr;
    kernel(n, cols, x + at, weight, row_stats, dy + at, block_dx, partial);
  });
  if (dweight) combine<T>(blocks, cols, scratch, dweight);
  if (dbias) combine<T>(blocks, cols, scratch + cols, dbias);
}
template void layer_norm_backward(std::int64_t, std::int64_t, const float*, const float*, const float*, const float*,
                                  Sink<float>, Sink<float>, Sink<float>, float*);
template void layer_norm_backward(std::int64_t, std::int64_t, const double*, const double*, const double*,
                                  const double*, Sink<double>, Sink<double>, Sink<double>, double*);

}  // namespace maki::kernels
#endif
