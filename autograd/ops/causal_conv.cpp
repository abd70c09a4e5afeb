// Short convolutions over tokens. The formulas are in kernels/causal_conv.h.
#include "autograd/kernels/causal_conv.h"

#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {

Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& before) {
  check_same_type("causal_conv", x, weight);
  const Shape &s = x.shape(), &sw = weight.shape();
  check(s.rank() == 3 && sw.rank() == 2 && sw[0] >= 1 && sw[1] == s[2],
        "causal_conv: x must be [B, T, C] and the weight [K, C] with K >= 1; got {} and {}", s, sw);
  if (before) {
    check_same_type("causal_conv", x, before);
    check(Tape::current() == nullptr,
          "causal_conv: tokens before the first one have no gradient; end the Recording before generating");
    const Shape& sb = before.shape();
    check(sb.rank() == 3 && sb[0] == s[0] && sb[1] < sw[0] && sb[2] == s[2],
          "causal_conv: the tokens before x {} must be [B, m, C] with m < K = {}; got {}", s, sw[0], sb);
  }
  const kernels::CausalConvShape shape{s[0], s[1], s[2], sw[0], before ? before.shape()[1] : 0};
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() {
    kernels::causal_conv_forward(shape, x.data<T>(), before ? before.data<T>() : nullptr, weight.data<T>(),
                                 y.data<T>());
  });
  return record("causal_conv", y, {x, weight}, [x = x.detach(), weight = weight.detach(), shape](Grads& g) {
    dispatch(x.dtype(), [&]<class T>() {
      const Sink<T> dx = g.in<T>(0), dweight = g.in<T>(1);
      Tensor scratch;
      if (dweight) scratch = empty({kernels::causal_conv_backward_scratch(shape)}, x.dtype());
      kernels::causal_conv_backward(shape, x.data<T>(), weight.data<T>(), g.out<T>(), dx, dweight,
                                    scratch ? scratch.data<T>() : nullptr);
    });
  });
}

}  // namespace maki
