// Rotary positions. The formulas and the pairing of columns are in kernels/rotary.h.
#include "autograd/kernels/rotary.h"

#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {

Tensor rotary(const Tensor& x, const Tensor& angles, std::int64_t heads) {
  check_same_type("rotary", x, angles);
  const Shape &s = x.shape(), &sa = angles.shape();
  check(s.rank() == 3 && sa.rank() == 2 && sa[0] == s[1],
        "rotary: x must be [B, T, W] and the angles [T, D]; got {} and {}", s, sa);
  const std::int64_t size = sa[1];
  check(size % 2 == 0, "rotary: columns are rotated in pairs, so the size of a head must be even; got {}", size);
  check(heads >= 0 && (size == 0 || heads <= s[2] / size),
        "rotary: {} columns have room for at most {} heads of {} columns; got {}", s[2], size == 0 ? 0 : s[2] / size,
        size, heads);
  const kernels::RotaryShape shape{.batch = s[0], .tokens = s[1], .width = s[2], .heads = heads, .head_size = size};
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() {
    kernels::rotary(shape, kernels::Turn::forward, x.data<T>(), angles.data<T>(), Sink<T>{y.data<T>(), false});
  });
  return record("rotary", y, {x}, [angles = angles.detach(), shape](Grads& g) {
    dispatch(angles.dtype(), [&]<class T>() {
      const Sink<T> dx = g.in<T>(0);
      if (dx) kernels::rotary(shape, kernels::Turn::back, g.out<T>(), angles.data<T>(), dx);
    });
  });
}

}  // namespace maki
