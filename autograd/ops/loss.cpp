// Token embeddings and the cross-entropy of their prediction. Formulas: kernels/embedding.h, kernels/cross_entropy.h.
#include <algorithm>
#include <optional>

#include "autograd/kernels/cross_entropy.h"
#include "autograd/kernels/embedding.h"
#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

void check_integers(const char* op, const char* what, const Tensor& x) {
  check(static_cast<bool>(x), "{}: {} are an empty tensor; they must hold values", op, what);
  check(x.dtype() == DType::int32, "{}: {} must be int32; got {}", op, what, to_string(x.dtype()));
}

// The first place whose id is neither in [0, n) nor `allowed`.
std::optional<std::int64_t> first_outside(const Tensor& ids, std::int64_t n, std::optional<std::int32_t> allowed) {
  const auto values = ids.values<std::int32_t>();
  const auto bad = std::ranges::find_if(
      values, [&](std::int32_t id) { return (id < 0 || id >= n) && !(allowed && id == *allowed); });
  if (bad == values.end()) return std::nullopt;
  return bad - values.begin();
}

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& ids) {
  check_floating("embedding", table);
  check_integers("embedding", "ids", ids);
  check(table.shape().rank() == 2, "embedding: the table must be [V, C]; got {}", table.shape());
  check(ids.shape().rank() < Shape::kMaxRank, "embedding: ids may have at most {} axes; got {}", Shape::kMaxRank - 1,
        ids.shape());
  const kernels::EmbeddingShape shape{.vocabulary = table.shape()[0], .cols = table.shape()[1], .count = ids.numel()};
  if (const auto bad = first_outside(ids, shape.vocabulary, std::nullopt)) {
    fail("embedding: ids must be in [0, {}), the rows of the table; got {} at place {} of ids {}", shape.vocabulary,
         ids.data<std::int32_t>()[*bad], *bad, ids.shape());
  }
  std::int64_t extents[Shape::kMaxRank];
  const auto end = std::ranges::copy(ids.shape().extents(), extents).out;
  *end = shape.cols;
  Tensor y = empty(Shape(std::span<const std::int64_t>(extents, end + 1)), table.dtype());
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

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options) {
  check_floating("cross_entropy", logits);
  check_integers("cross_entropy", "targets", targets);
  const Shape &s = logits.shape(), &st = targets.shape();
  check(s.rank() >= 1 && std::ranges::equal(s.extents().first(static_cast<std::size_t>(s.rank() - 1)), st.extents()),
        "cross_entropy: targets must have the shape of logits without its last axis; got logits {} and targets {}", s,
        st);
  const double smoothing = options.label_smoothing;
  check(smoothing >= 0 && smoothing <= 1, "cross_entropy: label_smoothing must be between 0 and 1; got {}", smoothing);
  if (const auto bad = first_outside(targets, s.cols(), options.ignored)) {
    fail("cross_entropy: targets must be in [0, {}), or {} to be ignored; got {} at place {} of targets {}", s.cols(),
         options.ignored, targets.data<std::int32_t>()[*bad], *bad, st);
  }
  const kernels::CrossEntropyRows rows{.rows = targets.numel(),
                                       .vocabulary = s.cols(),
                                       .targets = targets.data<std::int32_t>(),
                                       .ignored = options.ignored,
                                       .label_smoothing = smoothing};
  const auto ids = targets.values<std::int32_t>();
  const auto counted = static_cast<double>(targets.numel() - std::ranges::count(ids, options.ignored));
  const double factor = options.sum ? 1 : counted > 0 ? 1 / counted : 0;

  Tensor loss = empty({}, logits.dtype()), stats = empty({rows.rows, kernels::kCrossEntropyStats}, logits.dtype());
  Tensor scratch = empty({kernels::cross_entropy_scratch(rows)}, DType::float64);
  dispatch(logits.dtype(), [&]<class T>() {
    const double total =
        kernels::cross_entropy_forward(rows, logits.data<T>(), stats.data<T>(), scratch.data<double>());
    *loss.data<T>() = static_cast<T>(total * factor);
  });
  // `rows` points to the block that `targets` keeps alive.
  return record("cross_entropy", loss, {logits}, [logits, targets, stats, rows, factor](Grads& g) {
    dispatch(logits.dtype(), [&]<class T>() {
      const double scale = static_cast<double>(*g.out<T>()) * factor;
      if (const Sink<T> dlogits = g.in<T>(0)) {
        kernels::cross_entropy_backward(rows, logits.data<T>(), stats.data<T>(), scale, dlogits);
      }
    });
  });
}

}  // namespace maki
