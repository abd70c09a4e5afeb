#include "autograd/kernels/causal_conv.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/causal_conv.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows [begin, end), of batch · tokens, of y_t = Σ_k weight_k · x_{t−k}. Inputs before the first token of a sequence
// are read from the end of its part of `before`.
template <class T>
void causal_conv_forward_rows(const CausalConvShape& shape, std::int64_t begin, std::int64_t end, const T* x,
                              const T* before, const T* weight, T* y) {
  const std::int64_t width = shape.width;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t t = row % shape.tokens, b = row / shape.tokens;
    const std::int64_t last_k = std::min(shape.taps - 1, t + shape.before);
    const T* const token = x + row * width;
    const T* const end_of_before = before != nullptr ? before + (b + 1) * shape.before * width : nullptr;
    for_each_vector<T>(width, [=](const auto& at, std::int64_t i) HWY_ATTR {
      auto sum = hn::Mul(at.Load(weight + i), at.Load(token + i));
      for (std::int64_t k = 1; k <= last_k; ++k) {
        const T* const earlier = k <= t ? token - k * width : end_of_before - (k - t) * width;
        sum = hn::MulAdd(at.Load(weight + k * width + i), at.Load(earlier + i), sum);
      }
      at.Store(sum, y + row * width + i);
    });
  }
}

// Rows [begin, end) of dx_t = Σ_k weight_k · dy_{t+k}. partial [K, width], or null, becomes the rows' share of
// dweight_k = Σ_t dy_t · x_{t−k}.
template <class T>
void causal_conv_backward_rows(const CausalConvShape& shape, std::int64_t begin, std::int64_t end, const T* x,
                               const T* weight, const T* dy, Sink<T> dx, T* partial) {
  const std::int64_t width = shape.width;
  if (partial != nullptr) std::fill(partial, partial + shape.taps * width, T{0});
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t t = row % shape.tokens;
    const std::int64_t last_k = std::min(shape.taps - 1, t), last_later_k = std::min(shape.taps, shape.tokens - t) - 1;
    const T *const token = x + row * width, *const gradient = dy + row * width;
    const Sink<T> dx_row{dx ? dx.data + row * width : nullptr, dx.add};
    for_each_vector<T>(width, [=](const auto& at, std::int64_t i) HWY_ATTR {
      if (dx_row) {
        auto sum = hn::Mul(at.Load(weight + i), at.Load(gradient + i));
        for (std::int64_t k = 1; k <= last_later_k; ++k) {
          sum = hn::MulAdd(at.Load(weight + k * width + i), at.Load(gradient + k * width + i), sum);
        }
        put_vector(at, dx_row, i, sum);
      }
      for (std::int64_t k = 0; partial != nullptr && k <= last_k; ++k) {
        T* const share = partial + k * width + i;
        at.Store(hn::MulAdd(at.Load(gradient + i), at.Load(token - k * width + i), at.Load(share)), share);
      }
    });
  }
}

MAKI_KERNEL(causal_conv_forward_rows);
MAKI_KERNEL(causal_conv_backward_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(causal_conv_forward_rows);
MAKI_EXPORT(causal_conv_backward_rows);

// Rows per task of backward. Each task sums its rows' share of dweight, and the shares are added in order, so the bits
// of dweight depend on this number. Smaller blocks make more shares to add, larger ones fewer tasks: 24 of the 768 rows
// of the quick start.
constexpr std::int64_t kBlockRows = 32;

}  // namespace

template <class T>
void causal_conv_forward(const CausalConvShape& shape, const T* x, const T* before, const T* weight, T* y) {
  const auto kernel = MAKI_DISPATCH(causal_conv_forward_rows, T);
  parallel_ranges(shape.batch * shape.tokens, shape.taps * shape.width,
                  [&](std::int64_t begin, std::int64_t end) { kernel(shape, begin, end, x, before, weight, y); });
}
template void causal_conv_forward(const CausalConvShape&, const float*, const float*, const float*, float*);
template void causal_conv_forward(const CausalConvShape&, const double*, const double*, const double*, double*);

std::int64_t causal_conv_backward_scratch(const CausalConvShape& shape) {
  return ceil_div(shape.batch * shape.tokens, kBlockRows) * shape.taps * shape.width;
}

template <class T>
void causal_conv_backward(const CausalConvShape& shape, const T* x, const T* weight, const T* dy, Sink<T> dx,
                          Sink<T> dweight, T* scratch) {
  const auto kernel = MAKI_DISPATCH(causal_conv_backward_rows, T);
  const std::int64_t rows = shape.batch * shape.tokens, weights = shape.taps * shape.width;
  const std::int64_t blocks = ceil_div(rows, kBlockRows);
  parallel_for(blocks, 2 * kBlockRows * weights, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlockRows, end = std::min(rows, begin + kBlockRows);
    kernel(shape, begin, end, x, weight, dy, dx, dweight ? scratch + block * weights : nullptr);
  });
  if (dweight) column_sum<T>(blocks, weights, scratch, weights, dweight);
}
template void causal_conv_backward(const CausalConvShape&, const float*, const float*, const float*, Sink<float>,
                                   Sink<float>, float*);
template void causal_conv_backward(const CausalConvShape&, const double*, const double*, const double*, Sink<double>,
                                   Sink<double>, double*);

}  // namespace maki::kernels
#endif
