#include "autograd/kernels/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/core/parallel.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/rms_norm.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One row of y = x · rrms · weight, rrms = 1 / sqrt(mean(x²) + eps).
template <class T>
HWY_INLINE void rms_norm_forward_row(std::int64_t cols, const T* x, const T* weight, double eps, T* y, T* rrms) {
  const double squares = sum_row<double>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    const auto v = at.LoadAsDouble(x + i);
    return hn::Mul(v, v);
  });
  const double mean = squares / static_cast<double>(cols);
  *rrms = mean <= std::numeric_limits<double>::max() ? static_cast<T>(1 / std::sqrt(mean + eps))
                                                     : std::numeric_limits<T>::quiet_NaN();
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, *rrms);
  for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    auto v = hn::Mul(at.Load(x + i), factor);
    if (weight != nullptr) v = hn::Mul(v, at.Load(weight + i));
    at.Store(v, y + i);
  });
}

// The gradient of one row of y = x̂ · weight with x̂ = x · rrms, see rms_norm.h. partial [cols], or null, accumulates
// Σ dy · x̂ over the rows of a block.
template <class T>
HWY_INLINE void rms_norm_backward_row(std::int64_t cols, const T* x, const T* weight, T rrms, const T* dy, Sink<T> dx,
                                      T* partial) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, rrms);
  const double dot = sum_row<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    auto product = hn::Mul(at.Load(dy + i), hn::Mul(at.Load(x + i), factor));
    if (partial != nullptr) at.Store(hn::Add(product, at.Load(partial + i)), partial + i);
    if (weight != nullptr) product = hn::Mul(product, at.Load(weight + i));
    return product;
  });
  if (!dx) return;
  const auto mean = hn::Set(d, static_cast<T>(dot / static_cast<double>(cols)));
  for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
    auto g = at.Load(dy + i);
    if (weight != nullptr) g = hn::Mul(g, at.Load(weight + i));
    const auto normal = hn::Mul(at.Load(x + i), factor);
    put_vector(at, dx, i, hn::Mul(factor, hn::NegMulAdd(normal, mean, g)));
  });
}

template <class T>
void rms_norm_forward_rows(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, double eps, T* y,
                           T* rrms) {
  for (std::int64_t i = 0; i < rows; ++i) {
    rms_norm_forward_row(cols, x + i * cols, weight, eps, y + i * cols, rrms + i);
  }
}

template <class T>
void rms_norm_backward_rows(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* rrms,
                            const T* dy, Sink<T> dx, T* partial) {
  if (partial != nullptr) std::fill(partial, partial + cols, T{0});
  for (std::int64_t i = 0; i < rows; ++i) {
    const Sink<T> row{dx ? dx.data + i * cols : nullptr, dx.add};
    rms_norm_backward_row(cols, x + i * cols, weight, rrms[i], dy + i * cols, row, partial);
  }
}

template <class T>
void rms_norm_heads_forward_rows(const NormedHeads& shape, const T* x, const T* weight, double eps, T* y, T* rrms) {
  const std::int64_t size = shape.head_size, normalized = shape.normalized();
  for (std::int64_t i = 0; i < shape.rows; ++i, x += shape.width, y += shape.width, rrms += shape.heads) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      rms_norm_forward_row(size, x + h * size, weight + h * size, eps, y + h * size, rrms + h);
    }
    std::copy(x + normalized, x + shape.width, y + normalized);
  }
}

template <class T>
void rms_norm_heads_backward_rows(const NormedHeads& shape, const T* x, const T* weight, const T* rrms, const T* dy,
                                  Sink<T> dx, T* partial) {
  const std::int64_t size = shape.head_size, normalized = shape.normalized();
  if (partial != nullptr) std::fill(partial, partial + normalized, T{0});
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const std::int64_t at = i * shape.width;
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const std::int64_t head = at + h * size;
      const Sink<T> row{dx ? dx.data + head : nullptr, dx.add};
      rms_norm_backward_row(size, x + head, weight + h * size, rrms[i * shape.heads + h], dy + head, row,
                            partial != nullptr ? partial + h * size : nullptr);
    }
    if (!dx) continue;
    const Sink<T> rest{dx.data + at + normalized, dx.add};
    for_each_vector<T>(shape.width - normalized, [=](const auto& v, std::int64_t j) HWY_ATTR {
      put_vector(v, rest, j, v.Load(dy + at + normalized + j));
    });
  }
}

MAKI_KERNEL(rms_norm_forward_rows);
MAKI_KERNEL(rms_norm_backward_rows);
MAKI_KERNEL(rms_norm_heads_forward_rows);
MAKI_KERNEL(rms_norm_heads_backward_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(rms_norm_forward_rows);
MAKI_EXPORT(rms_norm_backward_rows);
MAKI_EXPORT(rms_norm_heads_forward_rows);
MAKI_EXPORT(rms_norm_heads_backward_rows);

// Rows per task of backward. Each task sums its rows' share of dweight, and the shares are added in order, so the bits
// of dweight depend on this number. Smaller blocks make more shares to add, larger ones fewer tasks: 24 of the 768 rows
// of the quick start.
constexpr std::int64_t kBlockRows = 32;
constexpr std::int64_t kRowWork = 32;  // rough cost per row besides its elements, in elementary operations (parallel.h)

}  // namespace

template <class T>
void rms_norm_forward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, double eps, T* y, T* rrms) {
  const auto kernel = MAKI_DISPATCH(rms_norm_forward_rows, T);
  parallel_ranges(rows, 2 * cols + kRowWork, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * cols;
    kernel(end - begin, cols, x + at, weight, eps, y + at, rrms + begin);
  });
}
template void rms_norm_forward(std::int64_t, std::int64_t, const float*, const float*, double, float*, float*);
template void rms_norm_forward(std::int64_t, std::int64_t, const double*, const double*, double, double*, double*);

std::int64_t rms_norm_backward_scratch(std::int64_t rows, std::int64_t cols) {
  return ceil_div(rows, kBlockRows) * cols;
}

template <class T>
void rms_norm_backward(std::int64_t rows, std::int64_t cols, const T* x, const T* weight, const T* rrms, const T* dy,
                       Sink<T> dx, Sink<T> dweight, T* scratch) {
  const auto kernel = MAKI_DISPATCH(rms_norm_backward_rows, T);
  const std::int64_t blocks = ceil_div(rows, kBlockRows);
  parallel_for(blocks, kBlockRows * (3 * cols + kRowWork), [&](std::int64_t block) {
    const std::int64_t begin = block * kBlockRows, n = std::min(rows - begin, kBlockRows), at = begin * cols;
    const Sink<T> block_dx{dx ? dx.data + at : nullptr, dx.add};
    kernel(n, cols, x + at, weight, rrms + begin, dy + at, block_dx, dweight ? scratch + block * cols : nullptr);
  });
  if (dweight) column_sum<T>(blocks, cols, scratch, cols, dweight);
}
template void rms_norm_backward(std::int64_t, std::int64_t, const float*, const float*, const float*, const float*,
                                Sink<float>, Sink<float>, float*);
template void rms_norm_backward(std::int64_t, std::int64_t, const double*, const double*, const double*, const double*,
                                Sink<double>, Sink<double>, double*);

template <class T>
void rms_norm_heads_forward(const NormedHeads& shape, const T* x, const T* weight, double eps, T* y, T* rrms) {
  const auto kernel = MAKI_DISPATCH(rms_norm_heads_forward_rows, T);
  parallel_ranges(shape.rows, 2 * shape.width + kRowWork, [&](std::int64_t begin, std::int64_t end) {
    NormedHeads part = shape;
    part.rows = end - begin;
    const std::int64_t at = begin * shape.width;
    kernel(part, x + at, weight, eps, y + at, rrms + begin * shape.heads);
  });
}
template void rms_norm_heads_forward(const NormedHeads&, const float*, const float*, double, float*, float*);
template void rms_norm_heads_forward(const NormedHeads&, const double*, const double*, double, double*, double*);

template <class T>
void rms_norm_heads_backward(const NormedHeads& shape, const T* x, const T* weight, const T* rrms, const T* dy,
                             Sink<T> dx, Sink<T> dweight, T* scratch) {
  const auto kernel = MAKI_DISPATCH(rms_norm_heads_backward_rows, T);
  const std::int64_t blocks = ceil_div(shape.rows, kBlockRows), normalized = shape.normalized();
  parallel_for(blocks, kBlockRows * (3 * shape.width + kRowWork), [&](std::int64_t block) {
    const std::int64_t begin = block * kBlockRows, at = begin * shape.width;
    NormedHeads part = shape;
    part.rows = std::min(shape.rows - begin, kBlockRows);
    const Sink<T> block_dx{dx ? dx.data + at : nullptr, dx.add};
    kernel(part, x + at, weight, rrms + begin * shape.heads, dy + at, block_dx,
           dweight ? scratch + block * normalized : nullptr);
  });
  if (dweight) column_sum<T>(blocks, normalized, scratch, normalized, dweight);
}
template void rms_norm_heads_backward(const NormedHeads&, const float*, const float*, const float*, const float*,
                                      Sink<float>, Sink<float>, float*);
template void rms_norm_heads_backward(const NormedHeads&, const double*, const double*, const double*, const double*,
                                      Sink<double>, Sink<double>, double*);

}  // namespace maki::kernels
#endif
