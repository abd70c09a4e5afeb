#include "autograd/kernels/rotary.h"

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/rotary.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One head of `half` pairs, forward: first = a cos − b sin, second = b cos + a sin. Back: with −sin for sin.
template <class T>
HWY_INLINE void rotate_head(std::int64_t half, Turn turn, const T* a, const T* b, const T* cos, const T* sin,
                            Sink<T> first, Sink<T> second) {
  const hn::ScalableTag<T> d;
  const auto sign = hn::Set(d, turn == Turn::forward ? T{1} : T{-1});
  for_each_vector<T>(half, [=](const auto& at, std::int64_t i) HWY_ATTR {
    const auto va = at.Load(a + i), vb = at.Load(b + i), c = at.Load(cos + i);
    const auto s = hn::Mul(sign, at.Load(sin + i));
    put_vector(at, first, i, hn::NegMulAdd(vb, s, hn::Mul(va, c)));
    put_vector(at, second, i, hn::MulAdd(va, s, hn::Mul(vb, c)));
  });
}

// Rows begin … end − 1 of the batch · tokens rows.
template <class T>
void rotary_rows(const RotaryShape& shape, Turn turn, std::int64_t begin, std::int64_t end, const T* x, const T* angles,
                 Sink<T> y) {
  const std::int64_t size = shape.head_size, half = size / 2, rotated = shape.heads * size;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* const from = x + row * shape.width;
    const Sink<T> to{y.data + row * shape.width, y.add};
    const T* const cos = angles + row % shape.tokens * size;
    for (std::int64_t h = 0; h < rotated; h += size) {
      const Sink<T> first{to.data + h, y.add}, second{to.data + h + half, y.add};
      rotate_head(half, turn, from + h, from + h + half, cos, cos + half, first, second);
    }
    for_each_vector<T>(shape.width - rotated, [=](const auto& at, std::int64_t i) HWY_ATTR {
      put_vector(at, to, rotated + i, at.Load(from + rotated + i));
    });
  }
}

MAKI_KERNEL(rotary_rows);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

namespace {
MAKI_EXPORT(rotary_rows);
}

template <class T>
void rotary(const RotaryShape& shape, Turn turn, const T* x, const T* angles, Sink<T> y) {
  const auto kernel = MAKI_DISPATCH(rotary_rows, T);
  parallel_ranges(shape.batch * shape.tokens, 2 * shape.width,
                  [&](std::int64_t begin, std::int64_t end) { kernel(shape, turn, begin, end, x, angles, y); });
}
template void rotary(const RotaryShape&, Turn, const float*, const float*, Sink<float>);
template void rotary(const RotaryShape&, Turn, const double*, const double*, Sink<double>);

}  // namespace maki::kernels
#endif
