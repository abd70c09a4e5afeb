// Linear attention. Saves the inputs, the output and one number per row and head, the reciprocal of its denominator;
// backward recomputes the sums over the past, and those over the future.
#include "autograd/kernels/linear_attention/linear_attention.h"

#include <cmath>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

using kernels::LinearAttentionShape;

LinearAttentionShape checked(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttention& options) {
  check_same_type("linear_attention", q, k);
  check_same_type("linear_attention", q, v);
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  check(sq.rank() == 3 && sk.rank() == 3 && sv.rank() == 3 && sq[0] == sk[0] && sq[0] == sv[0] && sk[1] == sv[1] &&
            sq[2] == sk[2],
        "linear_attention: q must be [B, T, H·F], k [B, S, H·F] and v [B, S, H·D]; got {}, {} and {}", sq, sk, sv);
  const std::int64_t heads = options.n_head;
  check(heads >= 1 && sq[2] % heads == 0 && sv[2] % heads == 0,
        "linear_attention: n_head must be at least 1 and divide the widths {} and {}; got {}", sq[2], sv[2], heads);
  check(!options.causal || sq[1] == sk[1],
        "linear_attention: there must be as many queries as keys if it is causal; got {} and {}", sq[1], sk[1]);
  check(std::isfinite(options.floor) && options.floor >= 0,
        "linear_attention: floor must be finite and not negative (0: none); got {}", options.floor);
  check(options.chunk >= 0, "linear_attention: chunk must not be negative (0: the default); got {}", options.chunk);
  return {.batch = sq[0],
          .queries = sq[1],
          .keys = sk[1],
          .heads = heads,
          .features = sq[2] / heads,
          .head_size = sv[2] / heads,
          .causal = options.causal,
          .chunk = options.chunk,
          .floor = options.floor};
}

template <class T>
kernels::HeadRows<T> rows_of(T* data, const Shape& shape) {
  return {.data = data, .row_stride = shape[2], .batch_stride = shape[1] * shape[2]};
}
template <class T>
kernels::HeadSink<T> sink_of(const Sink<T>& sink, const Shape& shape) {
  if (!sink) return {};
  return {.data = sink.data, .row_stride = shape[2], .batch_stride = shape[1] * shape[2], .add = sink.add};
}

template <class T>
void forward(const LinearAttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v, Tensor& y,
             Tensor& inverse, const kernels::LinearAttentionEnds<T>& ends) {
  Tensor scratch = empty({kernels::linear_attention_forward_scratch<T>(shape)}, y.dtype());
  kernels::linear_attention_forward<T>(shape, rows_of(q.data<T>(), q.shape()), rows_of(k.data<T>(), k.shape()),
                                       rows_of(v.data<T>(), v.shape()), rows_of(y.data<T>(), y.shape()),
                                       inverse.data<T>(), ends, scratch.data<T>());
}

template <class T>
void backward(const LinearAttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& y,
              const Tensor& inverse, Grads& g) {
  Tensor scratch = empty({kernels::linear_attention_backward_scratch<T>(shape)}, y.dtype());
  const Sink<T> dq = g.in<T>(0), dk = g.in<T>(1), dv = g.in<T>(2);
  kernels::linear_attention_backward<T>(shape, rows_of(q.data<T>(), q.shape()), rows_of(k.data<T>(), k.shape()),
                                        rows_of(v.data<T>(), v.shape()), rows_of(y.data<T>(), y.shape()),
                                        rows_of(g.out<T>(), y.shape()), inverse.data<T>(), sink_of(dq, q.shape()),
                                        sink_of(dk, k.shape()), sink_of(dv, v.shape()), scratch.data<T>());
}

Tensor outputs_of(const Tensor& q, const Tensor& v) {
  return empty({q.shape()[0], q.shape()[1], v.shape()[2]}, q.dtype());
}

}  // namespace

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttention& options) {
  const LinearAttentionShape shape = checked(q, k, v, options);
  Tensor y = outputs_of(q, v), inverse = empty({shape.batch, shape.heads, shape.queries}, q.dtype());
  dispatch(q.dtype(), [&]<class T>() { forward<T>(shape, q, k, v, y, inverse, {}); });
  return record("linear_attention", y, {q, k, v},
                [shape, q = q.detach(), k = k.detach(), v = v.detach(), y, inverse](Grads& g) {
                  dispatch(q.dtype(), [&]<class T>() { backward<T>(shape, q, k, v, y, inverse, g); });
                });
}

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttention& options,
                        LinearAttentionSums& sums) {
  check(Tape::current() == nullptr,
        "linear_attention: with sums it has no gradient; end the Recording before generating");
  LinearAttentionShape shape = checked(q, k, v, options);
  check(shape.causal, "linear_attention: sums need causal attention");
  check_same_type("linear_attention", q, sums.products);
  check_same_type("linear_attention", q, sums.keys);
  const Shape products{shape.batch, shape.heads, shape.features, shape.head_size};
  const Shape keys{shape.batch, shape.heads, shape.features};
  check(sums.products.shape() == products && sums.keys.shape() == keys,
        "linear_attention: the sums must be {} and {}; got {} and {}", products, keys, sums.products.shape(),
        sums.keys.shape());
  shape.carries = true;
  Tensor y = outputs_of(q, v), inverse = empty({shape.batch, shape.heads, shape.queries}, q.dtype());
  dispatch(q.dtype(), [&]<class T>() {
    T *const p = sums.products.data<T>(), *const z = sums.keys.data<T>();
    forward<T>(shape, q, k, v, y, inverse, {.from_sums = p, .from_norms = z, .to_sums = p, .to_norms = z});
  });
  return y;
}

}  // namespace maki
