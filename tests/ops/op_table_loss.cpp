#include <algorithm>

#include "autograd/ops.h"
#include "tests/ops/op_table.h"

namespace maki::tests {
namespace {

// A table of few rows, so that some ids repeat and others never occur.
Row embedding_row(const char* name, int rank, std::int64_t max_rows) {
  return {.op = "embedding", .name = name, .draw = [=](Draw& draw) {
            const std::int64_t vocabulary = draw.extent(max_rows);
            return Case{{draw.normals({vocabulary, draw.extent(35)}),
                         draw.integers(draw.shape(rank, 60), 0, static_cast<std::int32_t>(vocabulary - 1))},
                        [](const auto& x) { return embedding(x[0], x[1]); }};
          }};
}

// Sums of up to four rows, some of which are missing.
Row embedding_sum_row(const char* name, int rank, std::int64_t max_rows) {
  return {.op = "embedding_sum", .name = name, .draw = [=](Draw& draw) {
            const std::int64_t rows = draw.extent(max_rows);
            const Shape ids = draw.shape(rank, 40).with(rank - 1, draw.integer(1, 4));
            return Case{
                {draw.normals({rows, draw.extent(35)}), draw.integers(ids, -1, static_cast<std::int32_t>(rows - 1))},
                [](const auto& x) { return embedding_sum(x[0], x[1]); }};
          }};
}

// Logits […, V]. Targets include -1 if options.ignored is -1.
Row cross_entropy_row(const char* name, int rank, const CrossEntropy& options, double mean, double std) {
  return {.op = "cross_entropy", .name = name, .draw = [=](Draw& draw) {
            const Shape shape = draw.shape(rank);
            const Shape rows(shape.extents().first(static_cast<std::size_t>(rank - 1)));
            const auto last = static_cast<std::int32_t>(shape.cols() - 1);
            return Case{{draw.normals(shape, mean, std), draw.integers(rows, options.ignored == -1 ? -1 : 0, last)},
                        [=](const auto& x) { return cross_entropy(x[0], x[1], options); }};
          }};
}

// Distributions are constants, so the case holds them itself; float32 represents them exactly. Some rows are zeros, and
// the others sum to any number.
Row expected_cross_entropy_row(const char* name, int rank, double std) {
  return {.op = "expected_cross_entropy",
          .name = name,
          .draw =
              [=](Draw& draw) {
                const Shape shape = draw.shape(rank);
                Tensor expected = convert(exp(draw.normals(shape)), DType::float32);
                for (std::int64_t at = 0; at < shape.numel(); at += shape.cols()) {
                  if (draw.integer(0, 3) == 0) std::fill_n(expected.data<float>() + at, shape.cols(), 0.0F);
                }
                return Case{{draw.normals(shape, 0, std)}, [=](const auto& x) {
                              return expected_cross_entropy(x[0], convert(expected, x[0].dtype()));
                            }};
              },
          .empties = {[] {
            return Case{{zeros({2, 0}, DType::float64)}, [](const auto& x) {
                          return expected_cross_entropy(x[0], zeros({2, 0}, x[0].dtype()));
                        }};
          }}};
}

// x [… C], weight [V, C]. Targets include -1 if options.ignored is -1.
Row linear_cross_entropy_row(const char* name, int rank, const CrossEntropy& options) {
  return {.op = "linear_cross_entropy",
          .name = name,
          .draw =
              [=](Draw& draw) {
                const Shape x = draw.shape(rank);
                const Shape rows(x.extents().first(static_cast<std::size_t>(rank - 1)));
                const std::int64_t vocabulary = draw.extent(35);
                return Case{
                    {draw.normals(x, 0, 0.5), draw.normals({vocabulary, x.cols()}, 0, 0.5),
                     draw.integers(rows, options.ignored == -1 ? -1 : 0, static_cast<std::int32_t>(vocabulary - 1))},
                    [=](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2], options); }};
              },
          .offset_std = 0.1};
}

Row one_hot_row() {
  return {.op = "one_hot",
          .name = "any number of axes",
          .draw =
              [](Draw& draw) {
                const std::int64_t classes = draw.extent(20);
                const Shape shape = draw.shape(static_cast<int>(draw.integer(0, 4)), 60);
                return Case{{draw.integers(shape, 0, static_cast<std::int32_t>(classes - 1))},
                            [=](const auto& x) { return one_hot(x[0], classes); }};
              },
          .differentiable = false,
          .empties = {[] {
            return Case{{zeros({0, 3}, DType::int32)}, [](const auto& x) { return one_hot(x[0], 0); }};
          }}};
}

Row mse_row(const char* name, const MeanSquaredError& options) {
  const auto call = [=](const auto& x) { return mse(x[0], x[1], options); };
  return {.op = "mse",
          .name = name,
          .draw =
              [=](Draw& draw) {
                const Shape shape = draw.shape(static_cast<int>(draw.integer(0, 4)));
                const Tensor prediction = draw.normals(shape);
                return Case{{prediction, draw.normals(shape, 0.5)}, call};
              },
          .empties = {[=] {
            return Case{{zeros({3, 0}, DType::float64), zeros({3, 0}, DType::float64)}, call};
          }}};
}

Case empty_embedding(const Shape& table, const Shape& ids) {
  return {{zeros(table, DType::float64), zeros(ids, DType::int32)},
          [](const auto& x) { return embedding(x[0], x[1]); }};
}
Case empty_cross_entropy(const Shape& logits, const Shape& targets, const CrossEntropy& options) {
  return {{zeros(logits, DType::float64), full(targets, DType::int32, -1)},
          [=](const auto& x) { return cross_entropy(x[0], x[1], options); }};
}

Case empty_linear_cross_entropy(const Shape& x, const Shape& weight, const Shape& targets) {
  return {{zeros(x, DType::float64), zeros(weight, DType::float64), full(targets, DType::int32, -1)},
          [](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2]); }};
}

}  // namespace

std::vector<Row> loss_rows() {
  std::vector<Row> rows = {
      embedding_row("one axis", 1, 20),
      embedding_row("one axis, few rows", 1, 3),
      embedding_row("two axes", 2, 20),
      cross_entropy_row("one row", 1, {.ignored = -100}, 0, 1),
      cross_entropy_row("mean, some ignored", 2, {}, 0, 1),
      cross_entropy_row("sum, large mean", 2, {.ignored = -100, .sum = true}, 10, 1),
      cross_entropy_row("confident", 2, {.ignored = -100}, 0, 4),
      cross_entropy_row("leading axes, label smoothing", 3, {.label_smoothing = 0.1}, 0, 1),
      cross_entropy_row("an id of the vocabulary ignored, all smooth, sum", 2,
                        {.ignored = 0, .label_smoothing = 1, .sum = true}, 0, 1),
      linear_cross_entropy_row("mean, some ignored", 2, {}),
      linear_cross_entropy_row("leading axes, label smoothing, sum", 3,
                               {.ignored = -100, .label_smoothing = 0.1, .sum = true}),
      expected_cross_entropy_row("one row", 1, 1),
      expected_cross_entropy_row("some rows are zeros", 2, 1),
      expected_cross_entropy_row("leading axes, confident", 3, 4),
      one_hot_row(),
      mse_row("mean", {}),
      mse_row("sum", {.sum = true}),
      embedding_sum_row("one token", 1, 20),
      embedding_sum_row("tokens, few rows", 2, 3),
      embedding_sum_row("two axes", 3, 20),
  };
  rows[9].empties = {[] {
                       return empty_linear_cross_entropy({0, 3}, {4, 3}, {0});
                     },
                     [] {
                       return empty_linear_cross_entropy({3, 0}, {4, 0}, {3});
                     },
                     [] {
                       return empty_linear_cross_entropy({3, 2}, {0, 2}, {3});
                     }};
  rows[0].empties = {[] {
                       return empty_embedding({0, 3}, {0});
                     },
                     [] {
                       return empty_embedding({4, 3}, {0});
                     },
                     [] {
                       return empty_embedding({4, 0}, {5});
                     },
                     [] {
                       return empty_embedding({2000, 3}, {2, 0});
                     },
                     [] {
                       return empty_embedding({2000, 0}, {2});
                     }};
  rows[3].empties = {[] {
                       return empty_cross_entropy({0, 3}, {0}, {});
                     },
                     [] {
                       return empty_cross_entropy({3, 0}, {3}, {});
                     },
                     [] {
                       return empty_cross_entropy({3, 0}, {3}, {.label_smoothing = 0.1, .sum = true});
                     },
                     [] {
                       return empty_cross_entropy({3, 4}, {3}, {});
                     }};
  const auto sums = [](const Shape& table, const Shape& ids) {
    return [=]() -> Case {
      return {{zeros(table, DType::float64), full(ids, DType::int32, -1)},
              [](const auto& x) { return embedding_sum(x[0], x[1]); }};
    };
  };
  rows.back().empties = {sums({0, 3}, {2, 3}), sums({4, 3}, {0, 2}), sums({4, 0}, {2, 2}), sums({4, 3}, {5, 0})};
  return rows;
}

}  // namespace maki::tests
