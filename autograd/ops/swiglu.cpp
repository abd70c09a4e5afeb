// The gated activation of a feed-forward network. The formulas are in kernels/swiglu.h.
#include "autograd/kernels/swiglu.h"

#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {

Tensor swiglu(const Tensor& x) {
  check_floating("swiglu", x);
  const Shape& s = x.shape();
  check(s.rank() >= 1 && s.cols() % 2 == 0, "swiglu: x must be packed gate and up [… 2F]; got {}", s);
  const std::int64_t rows = s.rows(), cols = s.cols() / 2;
  Tensor y = empty(s.with(-1, cols), x.dtype());
  dispatch(x.dtype(), [&]<class T>() { kernels::swiglu_forward(rows, cols, x.data<T>(), y.data<T>()); });
  return record("swiglu", y, {x}, [x = x.detach(), rows, cols](Grads& g) {
    dispatch(x.dtype(), [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) kernels::swiglu_backward(rows, cols, x.data<T>(), g.out<T>(), dx);
    });
  });
}

}  // namespace maki
