// Short convolutions over tokens. The formulas are in kernels/short_conv.h.
#include "autograd/kernels/short_conv.h"

#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

kernels::ShortConvShape checked(const Tensor& x, const Tensor& weight, std::int64_t ahead, const Tensor& before) {
  check_same_type("short_conv", x, weight);
  const Shape &s = x.shape(), &sw = weight.shape();
  check(s.rank() == 3 && sw.rank() == 2 && sw[0] >= 1 && sw[1] == s[2],
        "short_conv: x must be [B, T, C] and the weight [K, C] with K >= 1; got {} and {}", s, sw);
  check(ahead >= 0 && ahead < sw[0], "short_conv: ahead must be at least 0 and below K = {}; got {}", sw[0], ahead);
  if (!before) return {s[0], s[1], s[2], sw[0], ahead};
  check_same_type("short_conv", x, before);
  check(ahead == 0, "short_conv: a convolution that sees tokens ahead reads whole sequences; got {} ahead", ahead);
  check(Tape::current() == nullptr,
        "short_conv: tokens before the first one have no gradient; end the Recording before generating");
  const Shape& sb = before.shape();
  check(sb.rank() == 3 && sb[0] == s[0] && sb[1] < sw[0] && sb[2] == s[2],
        "short_conv: the tokens before x {} must be [B, m, C] with m < K = {}; got {}", s, sw[0], sb);
  return {s[0], s[1], s[2], sw[0], ahead, sb[1]};
}

}  // namespace

Tensor short_conv(const Tensor& x, const Tensor& weight, std::int64_t ahead, const Tensor& before) {
  const kernels::ShortConvShape shape = checked(x, weight, ahead, before);
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() {
    kernels::short_conv_forward(shape, x.data<T>(), before ? before.data<T>() : nullptr, weight.data<T>(), y.data<T>());
  });
  return record("short_conv", y, {x, weight}, [x = x.detach(), weight = weight.detach(), shape](Grads& g) {
    dispatch(x.dtype(), [&]<class T>() {
      const Sink<T> dx = g.in<T>(0), dweight = g.in<T>(1);
      Tensor scratch;
      if (dweight) scratch = empty({kernels::short_conv_backward_scratch(shape)}, x.dtype());
      kernels::short_conv_backward(shape, x.data<T>(), weight.data<T>(), g.out<T>(), dx, dweight,
                                   scratch ? scratch.data<T>() : nullptr);
    });
  });
}

}  // namespace maki
