// Token embeddings, one-hot vectors, and losses: the cross-entropy of predicted tokens and the mean squared error. The
// formulas are in kernels/embedding.h and kernels/cross_entropy.h.
#include <algorithm>
#include <type_traits>

#include "autograd/core/parallel.h"
#include "autograd/kernels/cross_entropy.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/embedding.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"
#include "autograd/ops/axes.h"
#include "autograd/ops/broadcast.h"
#include "autograd/ops/common.h"
#include "autograd/ops/products.h"
#include "autograd/tape.h"

namespace maki {

Tensor embedding(const Tensor& table, const Tensor& ids) {
  check_floating("embedding", table);
  check_integers("embedding", "ids", ids);
  check(table.shape().rank() == 2, "embedding: the table must be [V, C]; got {}", table.shape());
  check(ids.shape().rank() < Shape::kMaxRank, "embedding: ids may have at most {} axes; got {}", Shape::kMaxRank - 1,
        ids.shape());
  const kernels::EmbeddingShape shape{
      .vocabulary = table.shape()[0], .cols = table.shape()[1], .id_count = ids.numel()};
  if (const auto bad = first_outside(ids, shape.vocabulary)) {
    fail("embedding: ids must be in [0, {}), the rows of the table; got {} at index {} of ids of shape {}",
         shape.vocabulary, ids.data<std::int32_t>()[*bad], *bad, ids.shape());
  }
  Tensor y = empty(with_inserted(ids.shape(), ids.shape().rank(), shape.cols), table.dtype());
  dispatch(table.dtype(), [&]<class T>() {
    kernels::embedding_forward(shape, table.data<T>(), ids.data<std::int32_t>(), y.data<T>());
  });
  return record("embedding", y, {table}, [ids, shape, dtype = table.dtype()](Grads& g) {
    Tensor scratch = empty({kernels::embedding_backward_scratch(shape)}, DType::int32);
    dispatch(dtype, [&]<class T>() {
      if (const Sink<T> dtable = g.in<T>(0)) {
        kernels::embedding_backward(shape, ids.data<std::int32_t>(), g.out<T>(), dtable, scratch.data<std::int32_t>());
      }
    });
  });
}

Tensor one_hot(const Tensor& ids, std::int64_t classes, DType dtype) {
  check_integers("one_hot", "ids", ids);
  check(classes >= 0, "one_hot: the number of classes must not be negative; got {}", classes);
  check(ids.shape().rank() < Shape::kMaxRank, "one_hot: ids may have at most {} axes; got {}", Shape::kMaxRank - 1,
        ids.shape());
  check(dtype != DType::int32, "one_hot: the type must be float32 or float64; got int32");
  if (const auto bad = first_outside(ids, classes)) {
    fail("one_hot: ids must be in [0, {}), the classes; got {} at index {} of ids of shape {}", classes,
         ids.data<std::int32_t>()[*bad], *bad, ids.shape());
  }
  Tensor y = empty(with_inserted(ids.shape(), ids.shape().rank(), classes), dtype);
  dispatch(dtype, [&]<class T>() {
    T* const rows = y.data<T>();
    const std::int32_t* const id = ids.data<std::int32_t>();
    parallel_ranges(ids.numel(), classes, [=](std::int64_t begin, std::int64_t end) {
      std::fill(rows + begin * classes, rows + end * classes, T{0});
      for (std::int64_t i = begin; i < end; ++i) rows[i * classes + id[i]] = 1;
    });
  });
  return y;
}

// loss = factor · Σ (x − t)²; dx = 2 · factor · (x − t) · dy, and the target's gradient is −dx. The difference is
// saved.
Tensor mse(const Tensor& prediction, const Tensor& target, const MeanSquaredError& options) {
  check_same_type("mse", prediction, target);
  check(prediction.shape() == target.shape(),
        "mse: prediction and target must have the same shape, because nothing is broadcast; got {} and {}",
        prediction.shape(), target.shape());
  const std::int64_t n = prediction.numel();
  const double factor = options.sum ? 1 : 1 / static_cast<double>(std::max<std::int64_t>(n, 1));
  const Tensor difference = broadcast_binary("mse", kernels::BinaryOp::sub, prediction, target);
  const Tensor squares = broadcast_binary("mse", kernels::BinaryOp::mul, difference, difference);
  const kernels::ReductionPlan plan = kernels::plan_reduction({n}, 1);
  Tensor loss = empty({}, difference.dtype()), scratch = empty({kernels::reduction_scratch(plan)}, DType::float64);
  dispatch(loss.dtype(), [&]<class T>() {
    kernels::sum(plan, squares.data<T>(), factor, scratch.data<double>(), Sink<T>{loss.data<T>(), false});
  });
  return record("mse", loss, {prediction, target}, [n, difference, factor](Grads& g) {
    dispatch(difference.dtype(), [&]<class T>() {
      const double share = 2 * factor * static_cast<double>(*g.out<T>());
      if (const Sink<T> dx = g.in<T>(0)) kernels::scale(n, difference.data<T>(), static_cast<T>(share), dx);
      if (const Sink<T> dt = g.in<T>(1)) kernels::scale(n, difference.data<T>(), static_cast<T>(-share), dt);
    });
  });
}

namespace {

// A cross-entropy without its logits. The loss is `factor` times the sum over the rows. `rows` points to the elements
// of the targets, which must stay alive.
struct CrossEntropyProblem {
  kernels::CrossEntropyRows rows;
  double factor;
};

// `shape` is that of the logits.
CrossEntropyProblem checked_targets(const char* op, const Shape& shape, const Tensor& targets,
                                    const CrossEntropy& options) {
  check_integers(op, "targets", targets);
  const Shape& st = targets.shape();
  check(shape.rank() >= 1 &&
            std::ranges::equal(shape.extents().first(static_cast<std::size_t>(shape.rank() - 1)), st.extents()),
        "{}: targets must have the shape of the logits without the last axis; got logits {} and targets {}", op, shape,
        st);
  const double smoothing = options.label_smoothing;
  check(smoothing >= 0 && smoothing <= 1, "{}: label_smoothing must be between 0 and 1; got {}", op, smoothing);
  if (const auto bad = first_outside(targets, shape.cols(), options.ignored)) {
    fail("{}: targets must be in [0, {}), or {} to be ignored; got {} at index {} of targets of shape {}", op,
         shape.cols(), options.ignored, targets.data<std::int32_t>()[*bad], *bad, st);
  }
  const auto ids = targets.values<std::int32_t>();
  const auto counted = static_cast<double>(targets.numel() - std::ranges::count(ids, options.ignored));
  return {.rows = {.rows = targets.numel(),
                   .vocabulary = shape.cols(),
                   .targets = targets.data<std::int32_t>(),
                   .ignored = options.ignored,
                   .label_smoothing = smoothing},
          .factor = options.sum   ? 1
                    : counted > 0 ? 1 / counted
                                  : 0};
}

Tensor stats_of(const kernels::CrossEntropyRows& rows, DType dtype) {
  return empty({rows.rows, kernels::kCrossEntropyStats}, dtype);
}
Tensor scratch_of(const kernels::CrossEntropyRows& rows) {
  return empty({kernels::cross_entropy_scratch(rows.rows, rows.vocabulary)}, DType::float64);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options) {
  check_floating("cross_entropy", logits);
  const CrossEntropyProblem problem = checked_targets("cross_entropy", logits.shape(), targets, options);
  const kernels::CrossEntropyRows rows = problem.rows;
  const double factor = problem.factor;
  Tensor loss = empty({}, logits.dtype()), stats = stats_of(rows, logits.dtype()), scratch = scratch_of(rows);
  dispatch(logits.dtype(), [&]<class T>() {
    const double total =
        kernels::cross_entropy_forward(rows, logits.data<T>(), stats.data<T>(), scratch.data<double>());
    *loss.data<T>() = static_cast<T>(total * factor);
  });
  return record("cross_entropy", loss, {logits}, [logits, targets, stats, rows, factor](Grads& g) {
    dispatch(logits.dtype(), [&]<class T>() {
      const double scale = static_cast<double>(*g.out<T>()) * factor;
      if (const Sink<T> dlogits = g.in<T>(0)) {
        kernels::cross_entropy_backward(rows, logits.data<T>(), stats.data<T>(), scale, dlogits);
      }
    });
  });
}

Tensor expected_cross_entropy(const Tensor& logits, const Tensor& expected) {
  const char* const op = "expected_cross_entropy";
  check_floating(op, logits);
  check_same_type(op, logits, expected);
  const Shape& shape = logits.shape();
  check(shape.rank() >= 1 && expected.shape() == shape,
        "{}: logits and expected probabilities must both be [… V]; got {} and {}", op, shape, expected.shape());
  const std::int64_t vocabulary = shape.cols(), rows = vocabulary > 0 ? logits.numel() / vocabulary : 0;
  Tensor loss = empty({}, logits.dtype()), stats = empty({rows, kernels::kCrossEntropyStats}, logits.dtype());
  Tensor scratch = empty({kernels::cross_entropy_scratch(rows, vocabulary)}, DType::float64);
  dispatch(logits.dtype(), [&]<class T>() {
    *loss.data<T>() = static_cast<T>(kernels::expected_cross_entropy_forward(
        rows, vocabulary, expected.data<T>(), logits.data<T>(), stats.data<T>(), scratch.data<double>()));
  });
  return record(op, loss, {logits}, [logits, expected = expected.detach(), stats, rows, vocabulary](Grads& g) {
    dispatch(logits.dtype(), [&]<class T>() {
      if (const Sink<T> dlogits = g.in<T>(0)) {
        kernels::expected_cross_entropy_backward(rows, vocabulary, expected.data<T>(), logits.data<T>(),
                                                 stats.data<T>(), static_cast<double>(*g.out<T>()), dlogits);
      }
    });
  });
}

namespace {

// Elements between rows of logits: rows begin at cache lines, so that products read and write whole ones.
std::int64_t logits_stride(std::int64_t columns) { return ceil_div(columns, std::int64_t{16}) * 16; }

// A chunk of forward has at least this many rows, however large they are (or all, if there are fewer), because every
// chunk reads the whole weight. It has all rows if they fit, and otherwise a multiple of this number.
constexpr std::int64_t kMinForwardChunkRows = 128;

// The part [rows, columns] of the logits that is processed at once. Forward uses whole rows. Backward uses as many rows
// as it can with at least kGemmChainLength columns, usually all, so that the weight's gradient takes one product per
// chunk of columns. Sums over rows or columns are cut only at multiples of kGemmChainLength, between two chains of the
// product, so that both gradients are bit-identical to those without chunks.
struct Chunk {
  std::int64_t rows, columns;
};
Chunk forward_chunk(const kernels::CrossEntropyRows& all, DType dtype) {
  const std::int64_t row_bytes = std::max<std::int64_t>(1, all.vocabulary * size_of(dtype));
  const std::int64_t fit = kMaxLogitsBytes / row_bytes;
  const std::int64_t most =
      all.rows <= fit ? fit : std::max(kMinForwardChunkRows, fit / kMinForwardChunkRows * kMinForwardChunkRows);
  return {std::max<std::int64_t>(1, std::min(all.rows, most)), all.vocabulary};
}
Chunk backward_chunk(const kernels::CrossEntropyRows& all, DType dtype) {
  const std::int64_t logits = kMaxLogitsBytes / size_of(dtype);
  const std::int64_t rows = std::max<std::int64_t>(1, std::min(all.rows, logits / kernels::kGemmChainLength));
  return {rows, std::min(all.vocabulary, logits / rows / kernels::kGemmChainLength * kernels::kGemmChainLength)};
}

// Calls body(index of the chunk's first row, rows of the chunk) for every chunk of `step` rows.
template <class Body>
void for_each_chunk(const kernels::CrossEntropyRows& all, std::int64_t step, const Body& body) {
  for (std::int64_t at = 0; at < all.rows; at += step) {
    kernels::CrossEntropyRows rows = all;
    rows.rows = std::min(step, all.rows - at);
    rows.targets = all.targets + at;
    body(at, rows);
  }
}

// logits = x · weightᵀ.
template <class T>
void make_logits(const LinearShape& s, const T* x, kernels::GemmOperand<T> weight, T* logits, bool recorded) {
  kernels::Gemm<T> g = linear_product(s, x, weight, recorded);
  g.c = logits;
  run(g);
}

// The backward pass of linear_cross_entropy(): dlogits from the logits, then dx += dlogits · weight and
// dweight += dlogitsᵀ · x.
template <class T>
struct LossBackward {
  const T* x;
  kernels::GemmOperand<T> weight;
  T* logits;  // of one chunk; overwritten by their gradient
  Sink<T> dx, dweight;
  double scale;
  std::int64_t in;
  kernels::GemmSizes whole;  // of the product over all rows and columns
  bool kept;                 // whether forward kept the logits; otherwise they are computed again

  // What the chunk of rows that begins with row `at` contributes, `columns` columns at a time.
  void run(std::int64_t at, const kernels::CrossEntropyRows& rows, std::int64_t columns, const T* stats) const {
    const T* const x_rows = x + at * in;
    std::int64_t begin = 0;
    do {  // at least once, because dx must be set to zero even if the vocabulary is empty
      const std::int64_t end = std::min(rows.vocabulary, begin + columns);
      LinearShape s{rows.rows, in, end - begin, whole, logits_stride(end - begin)};
      const kernels::GemmOperand<T> w = weight + begin * in;
      if (!kept) make_logits(s, x_rows, w, logits, true);
      const kernels::GemmOperand<T> dlogits = gradient(rows, begin, end, stats, s);
      if (dx) linear_backward_x(s, dlogits, w, Sink<T>{dx.data + at * in, dx.add || begin > 0});
      if (dweight) {
        linear_backward_weight(s, dlogits, x_rows, Sink<T>{dweight.data + begin * in, dweight.add || at > 0});
      }
      begin = end;
    } while (begin < rows.vocabulary);
  }

  // Overwrites the logits with their gradient, in float32 or, if the products round it, in bfloat16; sets its stride.
  kernels::GemmOperand<T> gradient(kernels::CrossEntropyRows rows, std::int64_t begin, std::int64_t end, const T* stats,
                                   LinearShape& s) const {
    rows.stride = s.stride;
    if constexpr (std::is_same_v<T, float>) {
      if (recorded_products_round<T>()) {
        kernels::cross_entropy_backward_rounded(rows, begin, end, logits, stats, scale);
        s.stride *= 2;
        return reinterpret_cast<const BFloat16*>(logits);
      }
    }
    kernels::cross_entropy_backward(rows, begin, end, logits, stats, scale, Sink<T>{logits, false});
    return logits;
  }
};

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& targets, const CrossEntropy& options) {
  const char* const op = "linear_cross_entropy";
  check_same_type(op, x, weight);
  const Shape &sx = x.shape(), &sw = weight.shape();
  check(sx.rank() >= 1 && sw.rank() == 2 && sx.cols() == sw.cols(),
        "{}: weight must be [V, C] with C the last extent of x; got x {}, weight {}", op, sx, sw);
  const CrossEntropyProblem problem = checked_targets(op, sx.with(-1, sw[0]), targets, options);
  const kernels::CrossEntropyRows all = problem.rows;
  const double factor = problem.factor;
  const std::int64_t in = sx.cols(), out = sw[0];
  const Chunk chunk = forward_chunk(all, x.dtype());
  const kernels::GemmSizes whole{all.rows, out, in};
  Tensor loss = empty({}, x.dtype()), stats = stats_of(all, x.dtype()), scratch = scratch_of(all);
  const std::int64_t stride = logits_stride(out);
  Tensor logits = empty({chunk.rows, stride}, x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    double total = 0;
    const bool recorded = rounds_as_recorded();
    const kernels::GemmOperand<T> w = forward_weight<T>(weight);
    for_each_chunk(all, chunk.rows, [&](std::int64_t at, kernels::CrossEntropyRows rows) {
      rows.stride = stride;
      make_logits({rows.rows, in, out, whole, stride}, x.data<T>() + at * in, w, logits.data<T>(), recorded);
      total += kernels::cross_entropy_forward(
          rows, logits.data<T>(), stats.data<T>() + at * kernels::kCrossEntropyStats, scratch.data<double>());
    });
    *loss.data<T>() = static_cast<T>(total * factor);
  });
  if (chunk.rows < all.rows) logits = Tensor();
  return record(
      op, loss, {x, weight}, [x, weight, targets, stats, logits, all, factor, in, out, whole](Grads& g) mutable {
        const bool kept = static_cast<bool>(logits);
        const Chunk step = kept ? Chunk{std::max<std::int64_t>(1, all.rows), out} : backward_chunk(all, x.dtype());
        if (!kept) logits = empty({step.rows, logits_stride(step.columns)}, x.dtype());
        dispatch(x.dtype(), [&]<class T>() {
          const double scale = static_cast<double>(*g.out<T>()) * factor;
          const Sink<T> dx = g.in<T>(0), dweight = g.in<T>(1);
          if (all.rows == 0 && dweight && !dweight.add) std::fill(dweight.data, dweight.data + out * in, T{0});
          const LossBackward<T> pass{
              x.data<T>(), weight_operand<T>(weight, true), logits.data<T>(), dx, dweight, scale, in, whole, kept};
          for_each_chunk(all, step.rows, [&](std::int64_t at, const kernels::CrossEntropyRows& rows) {
            pass.run(at, rows, step.columns, stats.data<T>() + at * kernels::kCrossEntropyStats);
          });
        });
      });
}

}  // namespace maki
