// Multi-head attention over packed projections. Saves the inputs, the output and one number per row and head (the
// log-sum-exp of the scores); backward recomputes the attention weights and the dropout mask.
#include "autograd/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// One call of attention(): its sizes, and the mask and random stream that it saves for backward.
struct Problem {
  kernels::AttentionShape shape;
  Tensor key_mask;
  RandomStream stream{0, RandomPurpose::dropout};

  // The shape as kernels take it. Its pointers refer to this object, which must outlive it.
  kernels::AttentionShape bound() const {
    kernels::AttentionShape result = shape;
    if (key_mask) result.key_mask = key_mask.data<std::int32_t>();
    if (shape.dropout > 0) result.dropout_stream = &stream;
    return result;
  }
};

// The columns from `at` on, of a tensor with `tokens` rows of `width` columns per sequence.
template <class T>
kernels::HeadRows<T> rows_of(T* data, std::int64_t tokens, std::int64_t width, std::int64_t at) {
  return {.data = data + at, .row_stride = width, .batch_stride = tokens * width};
}
template <class T>
kernels::HeadSink<T> sink_of(const Sink<T>& sink, std::int64_t tokens, std::int64_t width, std::int64_t at) {
  if (!sink) return {};
  return {.data = sink.data + at, .row_stride = width, .batch_stride = tokens * width, .add = sink.add};
}

Problem checked(const Tensor& q, std::int64_t width, std::int64_t keys, const Attention& options) {
  const std::int64_t heads = options.n_head, batch = q.shape()[0];
  check(heads >= 1 && width % heads == 0, "attention: n_head must be at least 1 and divide the width {}; got {}", width,
        heads);
  check(options.dropout >= 0 && options.dropout < 1, "attention: dropout must be in [0, 1); got {}", options.dropout);
  check(std::isfinite(options.scale), "attention: scale must be finite (0: the default); got {}", options.scale);
  const Tensor& mask = options.key_mask;
  check(!mask || (mask.dtype() == DType::int32 && mask.shape() == Shape{batch, keys}),
        "attention: key_mask must be int32 [{}, {}], one entry per sequence and key; got {} {}", batch, keys,
        mask ? to_string(mask.dtype()) : "", mask ? mask.shape() : Shape{});
  const std::int64_t head_size = width / heads;
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(head_size));
  Problem problem{.shape = {.batch = batch,
                            .queries = q.shape()[1],
                            .keys = keys,
                            .heads = heads,
                            .head_size = head_size,
                            .causal = options.causal,
                            .scale = scale},
                  .key_mask = mask};
  if (Tape* const tape = Tape::current(); tape != nullptr && options.dropout > 0) {
    problem.shape.dropout = options.dropout;
    problem.stream = tape->next_stream(RandomPurpose::dropout);
  }
  return problem;
}

// Where q, k and v are, C = width columns each: q in columns [0, C) of rows of q_width columns; k and v from columns
// k_at and v_at on, in kv_rows rows of kv_width columns per sequence, the first of which are the keys.
struct Layout {
  std::int64_t width, q_width, kv_width, k_at, v_at, kv_rows;
};

template <class T>
void forward(const Problem& problem, const Layout& at, const Tensor& q, const Tensor& kv, Tensor& y, Tensor& lse) {
  const kernels::AttentionShape shape = problem.bound();
  Tensor scratch = empty({kernels::attention_forward_scratch<T>(shape)}, y.dtype());
  kernels::attention_forward<T>(shape, rows_of(q.data<T>(), shape.queries, at.q_width, 0),
                                rows_of(kv.data<T>(), at.kv_rows, at.kv_width, at.k_at),
                                rows_of(kv.data<T>(), at.kv_rows, at.kv_width, at.v_at),
                                rows_of(y.data<T>(), shape.queries, at.width, 0), lse.data<T>(), scratch.data<T>());
}

template <class T>
void backward(const Problem& problem, const Layout& at, const Tensor& q, const Tensor& kv, const Tensor& y,
              const Tensor& lse, const T* dy, const Sink<T>& dq, const Sink<T>& dkv) {
  const kernels::AttentionShape shape = problem.bound();
  Tensor scratch = empty({kernels::attention_backward_scratch<T>(shape)}, y.dtype());
  kernels::attention_backward<T>(
      shape, rows_of(q.data<T>(), shape.queries, at.q_width, 0),
      rows_of(kv.data<T>(), at.kv_rows, at.kv_width, at.k_at), rows_of(kv.data<T>(), at.kv_rows, at.kv_width, at.v_at),
      rows_of(y.data<T>(), shape.queries, at.width, 0), rows_of(dy, shape.queries, at.width, 0), lse.data<T>(),
      sink_of(dq, shape.queries, at.q_width, 0), sink_of(dkv, at.kv_rows, at.kv_width, at.k_at),
      sink_of(dkv, at.kv_rows, at.kv_width, at.v_at), scratch.data<T>());
}

// The gradient of the rows of k‖v that are no keys is 0.
template <class T>
void clear_rows_after(const kernels::AttentionShape& shape, const Layout& at, T* dkv) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    T* const rows = dkv + b * at.kv_rows * at.kv_width;
    std::fill(rows + shape.keys * at.kv_width, rows + at.kv_rows * at.kv_width, T{0});
  }
}

}  // namespace

Tensor attention(const Tensor& qkv, const Attention& options) {
  check_floating("attention", qkv);
  const Shape& s = qkv.shape();
  check(s.rank() == 3 && s[2] % 3 == 0, "attention: packed q, k and v must be [B, T, 3C]; got {}", s);
  check(options.keys == 0, "attention: the option keys is for separate q and k‖v; got {} with packed q‖k‖v",
        options.keys);
  const std::int64_t width = s[2] / 3;
  const Problem problem = checked(qkv, width, s[1], options);
  const Layout at{
      .width = width, .q_width = 3 * width, .kv_width = 3 * width, .k_at = width, .v_at = 2 * width, .kv_rows = s[1]};
  Tensor y = empty({s[0], s[1], width}, qkv.dtype()), lse = empty({s[0], options.n_head, s[1]}, qkv.dtype());
  dispatch(qkv.dtype(), [&]<class T>() { forward<T>(problem, at, qkv, qkv, y, lse); });
  return record("attention", y, {qkv}, [problem, at, qkv, y, lse](Grads& g) {
    dispatch(qkv.dtype(), [&]<class T>() {
      if (const Sink<T> d = g.in<T>(0)) backward<T>(problem, at, qkv, qkv, y, lse, g.out<T>(), d, d);
    });
  });
}

Tensor attention(const Tensor& q, const Tensor& kv, const Attention& options) {
  check_same_type("attention", q, kv);
  const Shape &sq = q.shape(), &skv = kv.shape();
  check(sq.rank() == 3 && skv.rank() == 3 && sq[0] == skv[0] && skv[2] == 2 * sq[2],
        "attention: q must be [B, T, C] and packed k and v [B, S, 2C]; got {} and {}", sq, skv);
  const std::int64_t width = sq[2];
  check(options.keys >= 0 && options.keys <= skv[1],
        "attention: keys must be in [0, {}], the rows of k‖v (0: all); got {}", skv[1], options.keys);
  const Problem problem = checked(q, width, options.keys > 0 ? options.keys : skv[1], options);
  const Layout at{.width = width, .q_width = width, .kv_width = 2 * width, .k_at = 0, .v_at = width, .kv_rows = skv[1]};
  Tensor y = empty({sq[0], sq[1], width}, q.dtype()), lse = empty({sq[0], options.n_head, sq[1]}, q.dtype());
  dispatch(q.dtype(), [&]<class T>() { forward<T>(problem, at, q, kv, y, lse); });
  return record("attention", y, {q, kv}, [problem, at, q, kv, y, lse](Grads& g) {
    dispatch(q.dtype(), [&]<class T>() {
      const Sink<T> dq = g.in<T>(0), dkv = g.in<T>(1);
      if (dkv && !dkv.add) clear_rows_after(problem.shape, at, dkv.data);
      backward<T>(problem, at, q, kv, y, lse, g.out<T>(), dq, dkv);
    });
  });
}

}  // namespace maki
