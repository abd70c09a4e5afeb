#include "autograd/kernels/short_conv.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/short_conv.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Taps {
  std::int64_t first, last;
};
// The weights k, from the first to the last, whose token t + A − k is known.
inline Taps taps_of_output(const ShortConvShape& s, std::int64_t t, std::int64_t before) {
  return {std::max<std::int64_t>(0, t + s.ahead - (s.tokens - 1)), std::min(s.taps - 1, t + s.ahead + before)};
}
// Those with which x_t is added to y_{t+k−A}.
inline Taps taps_of_input(const ShortConvShape& s, std::int64_t t) {
  return {std::max<std::int64_t>(0, s.ahead - t), std::min(s.taps - 1, s.tokens - 1 - t + s.ahead)};
}

// Rows [begin, end), of batch · tokens, of y_t = Σ_k weight_k · x_{t+A−k}. Inputs before the first token of a sequence
// are read from the end of its part of `before`.
template <class T>
void short_conv_forward_rows(const ShortConvShape& shape, std::int64_t begin, std::int64_t end, const T* x,
                             const T* before, const T* weight, T* y) {
  const std::int64_t width = shape.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t t = row % shape.tokens, b = row / shape.tokens;
    const Taps taps = taps_of_output(shape, t, shape.before);
    const std::int64_t newest = t + shape.ahead;  // the token of weight 0
    const T* const sequence = x + (row - t) * width;
    const T* const end_of_before = before != nullptr ? before + (b + 1) * shape.before * width : nullptr;
    for_each_vector<T>(width, [=](const auto& at, std::int64_t i) HWY_ATTR {
      auto sum =
          hn::Mul(at.Load(weight + taps.first * width + i), at.Load(sequence + (newest - taps.first) * width + i));
      for (std::int64_t k = taps.first + 1; k <= taps.last; ++k) {
        const T* const token = (k <= newest ? sequence : end_of_before) + (newest - k) * width;
        sum = hn::MulAdd(at.Load(weight + k * width + i), at.Load(token + i), sum);
      }
      at.Store(sum, y + row * width + i);
    });
  }
}

// Rows [begin, end) of dx_t = Σ_k weight_k · dy_{t+k−A}. partial [K, width], or null, becomes the rows' share of
// dweight_k = Σ_t dy_t · x_{t+A−k}.
template <class T>
void short_conv_backward_rows(const ShortConvShape& shape, std::int64_t begin, std::int64_t end, const T* x,
                              const T* weight, const T* dy, Sink<T> dx, T* partial) {
  const std::int64_t width = shape.width;
  if (partial != nullptr) std::fill(partial, partial + shape.taps * width, T{0});
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t t = row % shape.tokens;
    const Taps to_y = taps_of_input(shape, t), from_x = taps_of_output(shape, t, 0);
    const T *const sequence = x + (row - t) * width, *const gradients = dy + (row - t) * width;
    const std::int64_t newest = t + shape.ahead, oldest = t - shape.ahead;  // the tokens of weight 0
    const Sink<T> dx_row{dx ? dx.data + row * width : nullptr, dx.add};
    for_each_vector<T>(width, [=](const auto& at, std::int64_t i) HWY_ATTR {
      if (dx_row) {
        auto sum =
            hn::Mul(at.Load(weight + to_y.first * width + i), at.Load(gradients + (oldest + to_y.first) * width + i));
        for (std::int64_t k = to_y.first + 1; k <= to_y.last; ++k) {
          sum = hn::MulAdd(at.Load(weight + k * width + i), at.Load(gradients + (oldest + k) * width + i), sum);
        }
        put_vector(at, dx_row, i, sum);
      }
      for (std::int64_t k = from_x.first; partial != nullptr && k <= from_x.last; ++k) {
        T* const share = partial + k * width + i;
        const auto gradient = at.Load(gradients + t * width + i);
        at.Store(hn::MulAdd(gradient, at.Load(sequence + (newest - k) * width + i), at.Load(share)), share);
      }
    });
  }
}

MAKI_KERNEL(short_conv_forward_rows);
MAKI_KERNEL(short_conv_backward_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(short_conv_forward_rows);
MAKI_EXPORT(short_conv_backward_rows);

// Rows per task of backward. Each task sums its rows' share of dweight, and the shares are added in order, so the bits
// of dweight depend on this number. Smaller blocks make more shares to add, larger ones fewer tasks: 24 of the 768 rows
// of the quick start.
constexpr std::int64_t kBlockRows = 32;

}  // namespace

template <class T>
void short_conv_forward(const ShortConvShape& shape, const T* x, const T* before, const T* weight, T* y) {
  const auto kernel = MAKI_DISPATCH(short_conv_forward_rows, T);
  parallel_ranges(shape.batch * shape.tokens, shape.taps * shape.width,
                  [&](std::int64_t begin, std::int64_t end) { kernel(shape, begin, end, x, before, weight, y); });
}
template void short_conv_forward(const ShortConvShape&, const float*, const float*, const float*, float*);
template void short_conv_forward(const ShortConvShape&, const double*, const double*, const double*, double*);

std::int64_t short_conv_backward_scratch(const ShortConvShape& shape) {
  return ceil_div(shape.batch * shape.tokens, kBlockRows) * shape.taps * shape.width;
}

template <class T>
void short_conv_backward(const ShortConvShape& shape, const T* x, const T* weight, const T* dy, Sink<T> dx,
                         Sink<T> dweight, T* scratch) {
  const auto kernel = MAKI_DISPATCH(short_conv_backward_rows, T);
  const std::int64_t rows = shape.batch * shape.tokens, weights = shape.taps * shape.width;
  const std::int64_t blocks = ceil_div(rows, kBlockRows);
  parallel_for(blocks, 2 * kBlockRows * weights, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlockRows, end = std::min(rows, begin + kBlockRows);
    kernel(shape, begin, end, x, weight, dy, dx, dweight ? scratch + block * weights : nullptr);
  });
  if (dweight) column_sum<T>(blocks, weights, scratch, weights, dweight);
}
template void short_conv_backward(const ShortConvShape&, const float*, const float*, const float*, Sink<float>,
                                  Sink<float>, float*);
template void short_conv_backward(const ShortConvShape&, const double*, const double*, const double*, Sink<double>,
                                  Sink<double>, double*);

}  // namespace maki::kernels
#endif
