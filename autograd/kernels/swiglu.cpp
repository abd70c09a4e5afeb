#include "autograd/kernels/swiglu.h"

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/swiglu.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/activation-inl.h"
#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y = silu(gate) · up
template <class T>
void swiglu_forward_rows(std::int64_t rows, std::int64_t cols, const T* x, T* y) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const gate = x + row * 2 * cols;
    const T* const up = gate + cols;
    T* const out = y + row * cols;
    for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
      at.Store(hn::Mul(Silu(at.d, at.Load(gate + i)), at.Load(up + i)), out + i);
    });
  }
}

// dgate (+)= dy · up · silu′(gate), dup (+)= dy · silu(gate), for y = silu(gate) · up
template <class T>
void swiglu_backward_rows(std::int64_t rows, std::int64_t cols, const T* x, const T* dy, Sink<T> dx) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const gate = x + row * 2 * cols;
    const T* const up = gate + cols;
    const T* const dout = dy + row * cols;
    const Sink<T> dgate{dx.data + row * 2 * cols, dx.add}, dup{dgate.data + cols, dx.add};
    for_each_vector<T>(cols, [=](const auto& at, std::int64_t i) HWY_ATTR {
      const auto g = at.Load(dout + i);
      auto derivative = g;
      const auto value = SiluAndDerivative(at.d, at.Load(gate + i), derivative);
      put_vector(at, dgate, i, hn::Mul(hn::Mul(g, at.Load(up + i)), derivative));
      put_vector(at, dup, i, hn::Mul(g, value));
    });
  }
}

MAKI_KERNEL(swiglu_forward_rows);
MAKI_KERNEL(swiglu_backward_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
namespace {

MAKI_EXPORT(swiglu_forward_rows);
MAKI_EXPORT(swiglu_backward_rows);

constexpr std::int64_t kElementWork = 8;  // elementary operations per element: those of an exponential (parallel.h)

}  // namespace

template <class T>
void swiglu_forward(std::int64_t rows, std::int64_t cols, const T* x, T* y) {
  const auto kernel = MAKI_DISPATCH(swiglu_forward_rows, T);
  parallel_ranges(rows, kElementWork * cols, [&](std::int64_t begin, std::int64_t end) {
    kernel(end - begin, cols, x + begin * 2 * cols, y + begin * cols);
  });
}
template void swiglu_forward(std::int64_t, std::int64_t, const float*, float*);
template void swiglu_forward(std::int64_t, std::int64_t, const double*, double*);

template <class T>
void swiglu_backward(std::int64_t rows, std::int64_t cols, const T* x, const T* dy, Sink<T> dx) {
  const auto kernel = MAKI_DISPATCH(swiglu_backward_rows, T);
  parallel_ranges(rows, 2 * kElementWork * cols, [&](std::int64_t begin, std::int64_t end) {
    const Sink<T> part{dx.data + begin * 2 * cols, dx.add};
    kernel(end - begin, cols, x + begin * 2 * cols, dy + begin * cols, part);
  });
}
template void swiglu_backward(std::int64_t, std::int64_t, const float*, const float*, Sink<float>);
template void swiglu_backward(std::int64_t, std::int64_t, const double*, const double*, Sink<double>);

}  // namespace maki::kernels
#endif
