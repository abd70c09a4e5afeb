// Attention whose scores depend on distances instead of positions. Saves the inputs, the output and the log-sum-exp of
// the scores, as attention does. The kernels give the gradients of the queries by the two terms of the scores, and
// those of the distances for each sequence; their sums are the gradients of q, u, v and r.
#include <cmath>

#include "autograd/core/check.h"
#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/broadcast.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// One call of relative_attention().
struct RelativeProblem {
  kernels::AttentionShape shape;
  RandomStream stream{0, RandomPurpose::dropout};
  std::int64_t width, kv_rows, r_rows;
  Tensor q, kv, r, minus_u, minus_v;

  // The shape as kernels take it, which refers to this object.
  kernels::AttentionShape bound() const {
    kernels::AttentionShape result = shape;
    if (shape.dropout > 0) result.dropout_stream = &stream;
    return result;
  }
  template <class T>
  kernels::HeadRows<T> rows(T* data) const {
    return {data, width, shape.queries * width};
  }
  template <class T>
  kernels::HeadRows<const T> keys_values(std::int64_t column) const {
    return {kv.data<T>() + column, 2 * width, kv_rows * 2 * width};
  }
  template <class T>
  kernels::RelativeRows<T> relative() const {
    return {r.data<T>(), width, minus_u.data<T>(), minus_v.data<T>()};
  }
};

void check_shapes(const Tensor& q, const Tensor& kv, const Tensor& r, const Tensor& u, const Tensor& v,
                  const RelativeAttention& options) {
  for (const Tensor* const x : {&kv, &r, &u, &v}) check_same_type("relative_attention", q, *x);
  const Shape &sq = q.shape(), &skv = kv.shape();
  check(sq.rank() == 3 && skv.rank() == 3 && sq[0] == skv[0] && skv[2] == 2 * sq[2],
        "relative_attention: q must be [B, T, C] and packed k and v [B, S, 2C]; got {} and {}", sq, skv);
  const std::int64_t width = sq[2], keys = options.keys > 0 ? options.keys : skv[1];
  check(
      options.keys >= 0 && keys <= skv[1] && keys >= sq[1],
      "relative_attention: there must be at least as many keys as queries, {}, and at most {}, the rows of k‖v; got {}",
      sq[1], skv[1], options.keys != 0 ? options.keys : keys);
  check(r.shape().rank() == 2 && r.shape()[0] >= keys && r.shape()[1] == width,
        "relative_attention: r must be [at least {}, {}], a row for each distance; got {}", keys, width, r.shape());
  check(u.shape() == Shape{width} && v.shape() == Shape{width},
        "relative_attention: u and v must be [{}], the width of q; got {} and {}", width, u.shape(), v.shape());
  check(options.n_head >= 1 && width % options.n_head == 0,
        "relative_attention: n_head must be at least 1 and divide the width {}; got {}", width, options.n_head);
  check(options.dropout >= 0 && options.dropout < 1, "relative_attention: dropout must be in [0, 1); got {}",
        options.dropout);
  check(std::isfinite(options.scale), "relative_attention: scale must be finite (0: the default); got {}",
        options.scale);
}

RelativeProblem checked(const Tensor& q, const Tensor& kv, const Tensor& r, const Tensor& u, const Tensor& v,
                        const RelativeAttention& options) {
  check_shapes(q, kv, r, u, v, options);
  const std::int64_t width = q.shape()[2], head_size = width / options.n_head;
  RelativeProblem problem{
      .shape = {.batch = q.shape()[0],
                .queries = q.shape()[1],
                .keys = options.keys > 0 ? options.keys : kv.shape()[1],
                .heads = options.n_head,
                .head_size = head_size,
                .causal = true,
                .relative = true,
                .scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(head_size))},
      .width = width,
      .kv_rows = kv.shape()[1],
      .r_rows = r.shape()[0],
      .q = q,
      .kv = kv,
      .r = r,
      .minus_u = empty_like(u),
      .minus_v = empty_like(v)};
  dispatch(q.dtype(), [&]<class T>() {
    kernels::scale<T>(width, u.data<T>(), T{-1}, {problem.minus_u.data<T>(), false});
    kernels::scale<T>(width, v.data<T>(), T{-1}, {problem.minus_v.data<T>(), false});
  });
  if (Tape* const tape = Tape::current(); tape != nullptr && options.dropout > 0) {
    problem.shape.dropout = options.dropout;
    problem.stream = tape->next_stream(RandomPurpose::dropout);
  }
  return problem;
}

template <class T>
void forward(const RelativeProblem& p, Tensor& y, Tensor& lse) {
  const kernels::AttentionShape shape = p.bound();
  Tensor scratch = empty({kernels::attention_forward_scratch<T>(shape)}, y.dtype());
  kernels::attention_forward<T>(shape, p.rows(p.q.data<T>()), p.keys_values<T>(0), p.keys_values<T>(p.width),
                                p.rows(y.data<T>()), lse.data<T>(), scratch.data<T>(), p.relative<T>());
}

// The gradients that the kernels compute: of the queries by the two terms of the scores, [B, T, C], and of the
// distances by sequence, [B, S, C].
struct Terms {
  Tensor content, position, r;
};

template <class T>
Terms backward(const RelativeProblem& p, const Tensor& y, const Tensor& lse, const T* dy, const Sink<T>& dkv) {
  const kernels::AttentionShape shape = p.bound();
  const std::int64_t width = p.width, stride = p.kv_rows * 2 * width, own = shape.queries * width;
  Terms terms{empty_like(y), empty_like(y), empty({shape.batch, shape.keys, width}, y.dtype())};
  kernels::HeadSink<T> dk, dv;
  if (dkv) {
    dk = {dkv.data, 2 * width, stride, dkv.add};
    dv = {dkv.data + width, 2 * width, stride, dkv.add};
    for (std::int64_t b = 0; b < shape.batch && !dkv.add; ++b) {
      std::fill(dkv.data + b * stride + shape.keys * 2 * width, dkv.data + (b + 1) * stride, T{0});
    }
  }
  Tensor scratch = empty({kernels::attention_backward_scratch<T>(shape)}, y.dtype());
  kernels::attention_backward<T>(
      shape, p.rows(p.q.data<T>()), p.keys_values<T>(0), p.keys_values<T>(width), p.rows(y.data<T>()), p.rows(dy),
      lse.data<T>(), {terms.content.data<T>(), width, own, false}, dk, dv, scratch.data<T>(), p.relative<T>(),
      {{terms.position.data<T>(), width, own, false}, {terms.r.data<T>(), width, shape.keys * width, false}});
  return terms;
}

// The gradient of the distances: the sum over the sequences, and 0 for distances that no pair of tokens has.
template <class T>
void sum_of_sequences(const RelativeProblem& p, const Tensor& terms, const Sink<T>& dr) {
  const std::int64_t used = p.shape.keys * p.width;
  kernels::column_sum<T>(p.shape.batch, used, terms.data<T>(), used, dr);
  if (!dr.add) std::fill(dr.data + used, dr.data + p.r_rows * p.width, T{0});
}

}  // namespace

Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, const Tensor& u, const Tensor& v,
                          const RelativeAttention& options) {
  check_floating("relative_attention", q);
  const RelativeProblem problem = checked(q, kv, r, u, v, options);
  Tensor y = empty_like(q), lse = empty({q.shape()[0], options.n_head, q.shape()[1]}, q.dtype());
  dispatch(q.dtype(), [&]<class T>() { forward<T>(problem, y, lse); });
  return record("relative_attention", y, {q, kv, r, u, v}, [problem, y, lse](Grads& g) {
    dispatch(y.dtype(), [&]<class T>() {
      const Sink<T> dq = g.in<T>(0), dkv = g.in<T>(1);
      const Terms terms = backward<T>(problem, y, lse, g.out<T>(), dkv);
      const std::int64_t rows = problem.shape.batch * problem.shape.queries, width = problem.width;
      if (dq) {
        const kernels::BroadcastPlan plan = kernels::plan_broadcast(y.shape(), y.shape(), y.shape());
        kernels::binary<T>(kernels::BinaryOp::add, plan, terms.content.data<T>(), terms.position.data<T>(), dq);
      }
      if (const Sink<T> dr = g.in<T>(2)) sum_of_sequences<T>(problem, terms.r, dr);
      if (const Sink<T> du = g.in<T>(3)) kernels::column_sum<T>(rows, width, terms.content.data<T>(), width, du);
      if (const Sink<T> dv = g.in<T>(4)) kernels::column_sum<T>(rows, width, terms.position.data<T>(), width, dv);
    });
  });
}

}  // namespace maki
