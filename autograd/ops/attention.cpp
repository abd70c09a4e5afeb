// Multi-head attention over packed projections. Saves the inputs, the output and one number per row and head (the
// log-sum-exp of the scores); backward recomputes the attention weights and the dropout mask.
#include "autograd/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/ops/attention_mask.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// Queries [query, query + shape.queries) of sequences [sequence, sequence + shape.batch): one call of the kernels.
// Their numbers in the saved log-sum-exps begin at `lse`.
struct Part {
  kernels::AttentionShape shape;
  Tensor key_mask;
  std::int64_t sequence = 0, query = 0, lse = 0;
};

// One call of attention(): its sizes, its parts (one, unless every query has a mask of its own), and the random stream
// that it saves for backward.
struct FusedAttention {
  kernels::AttentionShape shape;
  Part whole = {};                 // the only part, unless every query has a mask of its own
  std::vector<Part> masked_parts;  // otherwise these
  bool masked = false;
  RandomStream stream{0, RandomPurpose::dropout};

  std::span<const Part> parts() const { return masked ? std::span(masked_parts) : std::span(&whole, 1); }

  // The shape of a part as kernels take it. Its pointers refer to this object, which must outlive it.
  kernels::AttentionShape bound(const Part& part) const {
    kernels::AttentionShape result = part.shape;
    if (part.key_mask) result.key_mask = part.key_mask.data<std::int32_t>();
    if (shape.dropout > 0) result.dropout_stream = &stream;
    return result;
  }
};

// The parts of a problem whose queries have masks of their own. Every weight keeps a number of its own in the random
// stream.
std::vector<Part> cut_into_parts(const kernels::AttentionShape& whole, const Tensor& mask, const Tensor& key_mask) {
  std::vector<Part> parts;
  std::int64_t rows = 0;  // of all heads, in the parts so far
  for (const MaskRun& run : mask_runs(mask, key_mask, whole.batch, whole.causal)) {
    Part part{
        .shape = whole, .key_mask = run.key_mask, .sequence = run.first_sequence, .query = run.begin, .lse = rows};
    part.shape.batch = run.sequences;
    part.shape.queries = run.end - run.begin;
    part.shape.keys = run.keys;
    part.shape.causal = run.causal;
    part.shape.first_weight = static_cast<std::uint64_t>(rows * whole.keys);
    rows += run.sequences * whole.heads * part.shape.queries;
    parts.push_back(std::move(part));
  }
  return parts;
}

// The columns from `at` on, of a tensor with `rows` rows of `width` columns per sequence, from a row of a sequence on.
struct Columns {
  std::int64_t rows, width, at;
  std::int64_t begin(std::int64_t sequence, std::int64_t row) const { return (sequence * rows + row) * width + at; }
};
template <class T>
kernels::HeadRows<T> rows_of(T* data, const Columns& c, std::int64_t sequence, std::int64_t row) {
  return {.data = data + c.begin(sequence, row), .row_stride = c.width, .batch_stride = c.rows * c.width};
}
template <class T>
kernels::HeadSink<T> sink_of(const Sink<T>& sink, const Columns& c, std::int64_t sequence, std::int64_t row) {
  if (!sink) return {};
  return {.data = sink.data + c.begin(sequence, row),
          .row_stride = c.width,
          .batch_stride = c.rows * c.width,
          .add = sink.add};
}

// Throws Error unless n_kv_head is 0 or divides n_head.
void check_kv_heads(const Attention& options) {
  const std::int64_t heads = options.n_head, kv_heads = options.n_kv_head;
  check(kv_heads == 0 || (kv_heads >= 1 && heads >= 1 && heads % kv_heads == 0),
        "attention: n_kv_head must be 0 or divide n_head; got {} and {}", kv_heads, heads);
}

FusedAttention checked(const Tensor& q, std::int64_t width, std::int64_t keys, const Attention& options) {
  const std::int64_t heads = options.n_head, batch = q.shape()[0];
  check(heads >= 1 && width % heads == 0, "attention: n_head must be at least 1 and divide the width {}; got {}", width,
        heads);
  check(options.dropout >= 0 && options.dropout < 1, "attention: dropout must be in [0, 1); got {}", options.dropout);
  check(std::isfinite(options.scale), "attention: scale must be finite (0: the default); got {}", options.scale);
  const Tensor& mask = options.key_mask;
  check(!mask || (mask.dtype() == DType::int32 && mask.shape() == Shape{batch, keys}),
        "attention: key_mask must be int32 [{}, {}], one entry per sequence and key; got {} {}", batch, keys,
        mask ? to_string(mask.dtype()) : "", mask ? mask.shape() : Shape{});
  const Tensor& pairs = options.mask;
  const std::int64_t queries = q.shape()[1];
  check(!pairs || (pairs.dtype() == DType::int32 &&
                   (pairs.shape() == Shape{queries, keys} || pairs.shape() == Shape{batch, queries, keys})),
        "attention: mask must be int32 [{}, {}], one entry per query and key, or [{}, {}, {}]; got {} {}", queries,
        keys, batch, queries, keys, pairs ? to_string(pairs.dtype()) : "", pairs ? pairs.shape() : Shape{});
  const std::int64_t head_size = width / heads;
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(head_size));
  FusedAttention problem{.shape = {.batch = batch,
                                   .queries = queries,
                                   .keys = keys,
                                   .heads = heads,
                                   .head_size = head_size,
                                   .kv_heads = options.n_kv_head,
                                   .causal = options.causal,
                                   .rounds_operands = rounds_operands(),
                                   .scale = scale},
                         .masked_parts = {}};
  if (Tape* const tape = Tape::current(); tape != nullptr && options.dropout > 0) {
    problem.shape.dropout = options.dropout;
    problem.stream = tape->next_stream(RandomPurpose::dropout);
  }
  problem.masked = static_cast<bool>(pairs);
  problem.whole = {problem.shape, mask};
  if (pairs) problem.masked_parts = cut_into_parts(problem.shape, pairs, mask);
  return problem;
}

// Where q, of `width` columns, and k and v, of kv_width columns each, are. k and v are in the same rows, of which the
// first are the keys.
struct Layout {
  std::int64_t width, kv_width;
  Columns q, k, v;

  static Layout packed(std::int64_t tokens, std::int64_t width, std::int64_t kv_width) {
    const std::int64_t all = width + 2 * kv_width;
    return {width, kv_width, {tokens, all, 0}, {tokens, all, width}, {tokens, all, width + kv_width}};
  }
  static Layout separate(std::int64_t queries, std::int64_t rows, std::int64_t width, std::int64_t kv_width) {
    return {width, kv_width, {queries, width, 0}, {rows, 2 * kv_width, 0}, {rows, 2 * kv_width, kv_width}};
  }
  Columns y() const { return {q.rows, width, 0}; }
};

template <class T>
void forward(const FusedAttention& problem, const Layout& at, const Tensor& q, const Tensor& kv, Tensor& y,
             Tensor& lse) {
  for (const Part& part : problem.parts()) {
    const kernels::AttentionShape shape = problem.bound(part);
    Tensor scratch = empty({kernels::attention_forward_scratch<T>(shape)}, y.dtype());
    kernels::attention_forward<T>(
        shape, rows_of(q.data<T>(), at.q, part.sequence, part.query), rows_of(kv.data<T>(), at.k, part.sequence, 0),
        rows_of(kv.data<T>(), at.v, part.sequence, 0), rows_of(y.data<T>(), at.y(), part.sequence, part.query),
        lse.data<T>() + part.lse, scratch.data<T>());
  }
}

// Sets the gradients of k and v of rows [begin, …) to 0.
template <class T>
void clear_rows_from(std::int64_t begin, std::int64_t batch, const Layout& at, T* dkv) {
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t row = begin; row < at.k.rows; ++row) {
      std::fill_n(dkv + at.k.begin(b, row), at.kv_width, T{0});
      std::fill_n(dkv + at.v.begin(b, row), at.kv_width, T{0});
    }
  }
}

template <class T>
void backward(const FusedAttention& problem, const Layout& at, const Tensor& q, const Tensor& kv, const Tensor& y,
              const Tensor& lse, const T* dy, const Sink<T>& dq, Sink<T> dkv) {
  const bool whole = !problem.masked;
  if (dkv && !dkv.add) clear_rows_from(whole ? problem.shape.keys : 0, problem.shape.batch, at, dkv.data);
  if (!whole) dkv.add = true;  // the keys of one part are those of other parts as well
  for (const Part& part : problem.parts()) {
    const kernels::AttentionShape shape = problem.bound(part);
    const std::int64_t b = part.sequence, t = part.query;
    Tensor scratch = empty({kernels::attention_backward_scratch<T>(shape)}, y.dtype());
    kernels::attention_backward<T>(shape, rows_of(q.data<T>(), at.q, b, t), rows_of(kv.data<T>(), at.k, b, 0),
                                   rows_of(kv.data<T>(), at.v, b, 0), rows_of(y.data<T>(), at.y(), b, t),
                                   rows_of(dy, at.y(), b, t), lse.data<T>() + part.lse, sink_of(dq, at.q, b, t),
                                   sink_of(dkv, at.k, b, 0), sink_of(dkv, at.v, b, 0), scratch.data<T>());
  }
}

}  // namespace

Tensor attention(const Tensor& qkv, const Attention& options) {
  check_floating("attention", qkv);
  check_kv_heads(options);
  const Shape& s = qkv.shape();
  // Of the columns, as many groups as k has are those of k, as many those of v; the groups before them are those of q.
  const std::int64_t share = options.n_kv_head == 0 ? 1 : options.n_head / options.n_kv_head, groups = share + 2;
  check(s.rank() == 3 && s[2] % groups == 0, "attention: packed q, k and v must be [B, T, {}]; got {}",
        share == 1 ? "3C" : "(n_head + 2 n_kv_head) D", s);
  check(options.keys == 0, "attention: the option keys is for separate q and k‖v; got {} with packed q‖k‖v",
        options.keys);
  const std::int64_t kv_width = s[2] / groups, width = share * kv_width;
  const FusedAttention problem = checked(qkv, width, s[1], options);
  const Layout at = Layout::packed(s[1], width, kv_width);
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
  check_kv_heads(options);
  const Shape &sq = q.shape(), &skv = kv.shape();
  const std::int64_t share = options.n_kv_head == 0 ? 1 : options.n_head / options.n_kv_head;
  check(sq.rank() == 3 && skv.rank() == 3 && sq[0] == skv[0] && skv[2] * share == 2 * sq[2],
        "attention: q must be [B, T, C] and packed k and v [B, S, {}]; got {} and {}",
        share == 1 ? "2C" : "2 n_kv_head D", sq, skv);
  const std::int64_t width = sq[2], kv_width = skv[2] / 2;
  check(options.keys >= 0 && options.keys <= skv[1],
        "attention: keys must be in [0, {}], the rows of k‖v (0: all); got {}", skv[1], options.keys);
  const FusedAttention problem = checked(q, width, options.keys > 0 ? options.keys : skv[1], options);
  const Layout at = Layout::separate(sq[1], skv[1], width, kv_width);
  Tensor y = empty({sq[0], sq[1], width}, q.dtype()), lse = empty({sq[0], options.n_head, sq[1]}, q.dtype());
  dispatch(q.dtype(), [&]<class T>() { forward<T>(problem, at, q, kv, y, lse); });
  return record("attention", y, {q, kv}, [problem, at, q, kv, y, lse](Grads& g) {
    dispatch(q.dtype(), [&]<class T>() {
      const Sink<T> dq = g.in<T>(0), dkv = g.in<T>(1);
      backward<T>(problem, at, q, kv, y, lse, g.out<T>(), dq, dkv);
    });
  });
}

}  // namespace maki
