// Reductions and layout.
#include <algorithm>
#include <array>

#include "autograd/ops.h"
#include "tests/ops/op_table.h"

namespace maki::tests {
namespace {

template <class Op>
Case one(const Tensor& x, const Op& op) {
  return {{x}, [op](const auto& v) { return op(v[0]); }};
}

template <class Op>
Case reduced(const Op& op, const Tensor& x, const std::vector<int>& axes, bool keep) {
  return one(x, [=](const auto& v) { return op(v, axes, keep); });
}

template <class Op>
void add_reduction(std::vector<Row>& rows, const char* name, const Op& op) {
  rows.push_back({.op = name, .name = "random axes", .draw = [=](Draw& draw) {
                    const int rank = static_cast<int>(draw.integer(1, 5));
                    const Shape shape = draw.shape(rank, 200);
                    std::vector<int> axes;
                    for (int axis = 0; axis < rank; ++axis) {
                      if (draw.coin()) axes.push_back(draw.coin() ? axis : axis - rank);
                    }
                    const bool keep = draw.coin();
                    return reduced(op, draw.normals(shape, 1), axes, keep);
                  }});
  rows.push_back({.op = name, .name = "all", .draw = [=](Draw& draw) {
                    return reduced(op, draw.normals(draw.shape(static_cast<int>(draw.integer(0, 3)))), {}, false);
                  }});
  rows.push_back({.op = name, .name = "rows", .draw = [=](Draw& draw) {
                    return reduced(op, draw.normals(draw.shape(2)), {-1}, true);
                  }});
  rows.push_back({.op = name, .name = "columns", .draw = [=](Draw& draw) {
                    return reduced(op, draw.normals(draw.shape(2)), {0}, false);
                  }});
  const auto of = [op](const Shape& shape, const std::vector<int>& axes) {
    return [=] { return reduced(op, zeros(shape, DType::float64), axes, false); };
  };
  rows.back().empties = {of({0}, {}),     of({0, 3}, {1}),       of({3, 0}, {0}),   of({0, 3}, {0}),
                         of({3, 0}, {1}), of({2, 0, 3}, {0, 2}), of({2, 0, 3}, {1})};
}

Row transpose_row(const char* name, int rank, bool last_two) {
  return {.op = "transpose", .name = name, .draw = [=](Draw& draw) {
            const Shape shape = draw.shape(rank, 200);
            const int a = last_two ? -2 : static_cast<int>(draw.integer(-rank, rank - 1));
            const int b = last_two ? -1 : static_cast<int>(draw.integer(-rank, rank - 1));
            return one(draw.normals(shape), [=](const auto& x) { return transpose(x, a, b); });
          }};
}

Row concat_row(const char* name, int parts) {
  return {.op = "concat", .name = name, .draw = [=](Draw& draw) {
            const int rank = static_cast<int>(draw.integer(1, 4)),
                      axis = static_cast<int>(draw.integer(-rank, rank - 1));
            const Shape shape = draw.shape(rank, 60);
            Case drawn{{}, [=](const auto& x) { return concat(x, axis); }};
            for (int i = 0; i < parts; ++i) {
              const Shape part = draw.coin() ? shape : shape.with(axis, draw.integer(1, 9));
              drawn.inputs.push_back(draw.normals(part));
            }
            return drawn;
          }};
}

Row stack_row(const char* name, int parts) {
  return {.op = "stack", .name = name, .draw = [=](Draw& draw) {
            const int rank = static_cast<int>(draw.integer(0, 4)),
                      axis = static_cast<int>(draw.integer(-rank - 1, rank));
            const Shape shape = draw.shape(rank, 60);
            Case drawn{{}, [=](const auto& x) { return stack(x, axis); }};
            for (int i = 0; i < parts; ++i) drawn.inputs.push_back(draw.normals(shape));
            return drawn;
          }};
}

// Ids that take some elements several times and others never.
Row gather_row(const char* name, int least_rank, int most_rank) {
  return {.op = "gather", .name = name, .draw = [=](Draw& draw) {
            const int rank = static_cast<int>(draw.integer(least_rank, most_rank)),
                      axis = static_cast<int>(draw.integer(-rank, rank - 1));
            const Shape shape = draw.shape(rank, 200);
            const Tensor x = draw.normals(shape);
            const Tensor ids =
                draw.integers(shape.with(axis, draw.integer(1, 9)), 0, static_cast<std::int32_t>(shape[axis] - 1));
            return Case{{x, ids}, [=](const auto& v) { return gather(v[0], axis, v[1]); }};
          }};
}

void add_gathers(std::vector<Row>& rows) {
  rows.push_back(gather_row("vector", 1, 1));
  rows.push_back(gather_row("any axis", 2, 4));
  const auto gathered = [](const Shape& shape, const Shape& ids, int axis) {
    return [=] {
      return Case{{zeros(shape, DType::float64), zeros(ids, DType::int32)},
                  [=](const auto& v) { return gather(v[0], axis, v[1]); }};
    };
  };
  rows.back().empties = {gathered({3, 2}, {0, 2}, 0), gathered({0, 2}, {0, 2}, 0), gathered({2, 0}, {4, 0}, 0),
                         gathered({0, 2}, {0, 5}, 1)};
}

// Values at least 0.02 apart, so that no difference quotient changes which is largest.
Tensor distinct(Draw& draw, const Shape& shape) {
  Tensor x = empty(shape, DType::float64);
  const std::span<double> values = x.values<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto j = static_cast<std::size_t>(draw.integer(0, static_cast<std::int64_t>(i)));  // a random permutation
    values[i] = values[j];
    values[j] = 0.02 * static_cast<double>(i) - 1;
  }
  return x;
}

template <class Op>
Row maximum_row(const char* op, const char* name, const Op& call, int rank) {
  return {.op = op, .name = name, .draw = [=](Draw& draw) {
            const int axis = static_cast<int>(draw.integer(-rank, rank - 1));
            const bool keep = draw.coin();
            return one(distinct(draw, draw.shape(rank, 200)), [=](const auto& x) { return call(x, axis, keep); });
          }};
}

template <class Op>
void add_maxima(std::vector<Row>& rows, const char* op, const Op& call) {
  rows.push_back(maximum_row(op, "vector", call, 1));
  rows.push_back(maximum_row(op, "matrix", call, 2));
  rows.push_back(maximum_row(op, "any axis of four", call, 4));
  const auto of = [=](const Shape& shape, int axis) {
    return [=] { return one(zeros(shape, DType::float64), [=](const auto& x) { return call(x, axis, false); }); };
  };
  rows.back().empties = {of({0, 3}, 1), of({3, 0}, 0), of({2, 0, 3}, -1)};
}

Row slice_row() {
  return {.op = "slice", .name = "random", .draw = [](Draw& draw) {
            const int rank = static_cast<int>(draw.integer(1, 4)),
                      axis = static_cast<int>(draw.integer(-rank, rank - 1));
            const Shape shape = draw.shape(rank, 200);
            const std::int64_t begin = draw.integer(0, shape[axis] - 1), end = draw.integer(begin + 1, shape[axis]);
            return one(draw.normals(shape), [=](const auto& x) { return slice(x, axis, begin, end); });
          }};
}

template <class Op>
std::function<Case()> empty_of(const Shape& shape, const Op& op) {
  return [=] { return one(full(shape, DType::float64, 1), op); };
}

}  // namespace

std::vector<Row> layout_rows() {
  std::vector<Row> rows;
  add_reduction(rows, "sum", MAKI_OVERLOADS(sum));
  // A mean over no elements is NaN, and so is the factor of its gradient, so most cases with a size of 0 are those of
  // sum.
  add_reduction(rows, "mean", MAKI_OVERLOADS(mean));
  rows.back().empties = {[] {
                           return reduced(MAKI_OVERLOADS(mean), zeros({0, 3}, DType::float64), {1}, false);
                         },
                         [] { return reduced(MAKI_OVERLOADS(mean), zeros({0}, DType::float64), {}, false); }};
  rows.push_back(transpose_row("matrix", 2, true));
  rows.push_back(transpose_row("last two of three axes", 3, true));
  rows.push_back(transpose_row("any two of four", 4, false));
  rows.push_back(transpose_row("any two of five", 5, false));
  const auto transposed = [](int a, int b) { return [=](const auto& x) { return transpose(x, a, b); }; };
  rows.back().empties = {empty_of({0, 3}, transposed(0, 1)), empty_of({3, 0}, transposed(0, 1)),
                         empty_of({2, 3, 0}, transposed(0, 1)), empty_of({2, 0, 3}, transposed(0, 2)),
                         empty_of({0, 2, 3}, transposed(1, 2))};
  rows.push_back(concat_row("one part", 1));
  rows.push_back(concat_row("two parts", 2));
  rows.push_back(concat_row("five parts", 5));
  const auto doubled = [](int axis) { return [=](const auto& x) { return concat(std::vector{x, x}, axis); }; };
  rows.back().empties = {empty_of({0, 3}, doubled(0)), empty_of({0, 3}, doubled(1)), empty_of({3, 0}, doubled(0))};
  rows.push_back(stack_row("one part", 1));
  rows.push_back(stack_row("two parts", 2));
  rows.push_back(stack_row("five parts", 5));
  const auto twice = [](int axis) { return [=](const auto& x) { return stack(std::vector{x, x}, axis); }; };
  rows.back().empties = {empty_of({0, 3}, twice(0)), empty_of({0, 3}, twice(-1)), empty_of({3, 0}, twice(1))};
  add_gathers(rows);
  add_maxima(rows, "max", MAKI_OVERLOADS(max));
  add_maxima(rows, "argmax", MAKI_OVERLOADS(argmax));
  for (Row& row : rows) {
    if (row.op == "argmax") row.differentiable = row.propagates = false;
  }
  rows.push_back(slice_row());
  const auto cut = [](int axis, std::int64_t begin, std::int64_t end) {
    return [=](const auto& x) { return slice(x, axis, begin, end); };
  };
  rows.back().empties = {empty_of({4, 3}, cut(0, 2, 2)), empty_of({0, 3}, cut(0, 0, 0)), empty_of({0, 3}, cut(1, 1, 2)),
                         empty_of({4, 0}, cut(0, 1, 3))};
  return rows;
}

}  // namespace maki::tests
