#include "autograd/ops.h"
#include "tests/ops/op_table.h"

namespace maki::tests {
namespace {

// op(a) [… M, K] and op(b) [… K, N], where op transposes the last two axes if asked to. batch_a and batch_b are the
// numbers of leading axes.
Row matmul_row(const char* name, bool transpose_a, bool transpose_b, int batch_a, int batch_b) {
  return {.op = "matmul", .name = name, .draw = [=](Draw& draw) {
            const std::int64_t m = draw.extent(), n = draw.extent(35), k = draw.extent();
            const Shape leading = draw.shape(std::max(batch_a, batch_b), 6);
            const auto shape = [&](int batch, bool transposed, std::int64_t rows, std::int64_t cols) {
              std::vector<std::int64_t> extents(leading.extents().begin(), leading.extents().begin() + batch);
              extents.push_back(transposed ? cols : rows);
              extents.push_back(transposed ? rows : cols);
              return Shape(std::span<const std::int64_t>(extents));
            };
            return Case{
                {draw.normals(shape(batch_a, transpose_a, m, k)), draw.normals(shape(batch_b, transpose_b, k, n))},
                [=](const auto& x) { return matmul(x[0], x[1], transpose_a, transpose_b); }};
          }};
}

Case matmul_of(const Shape& a, const Shape& b) {
  return {{zeros(a, DType::float64), zeros(b, DType::float64)}, [](const auto& x) { return matmul(x[0], x[1]); }};
}

Row linear_row(const char* name, int rank, bool bias) {
  return {.op = "linear", .name = name, .draw = [=](Draw& draw) {
            const Shape x = draw.shape(rank);
            const std::int64_t out = draw.extent(35);
            Case drawn{{draw.normals(x), draw.normals({out, x.cols()})}, [](const auto& v) {
                         return linear(v[0], v[1], v.size() > 2 ? v[2] : std::decay_t<decltype(v[0])>());
                       }};
            if (bias) drawn.inputs.push_back(draw.normals({out}));
            return drawn;
          }};
}

// Inputs are small, so that the fifth derivative of gelu leaves the differences nine digits.
Row linear_gelu_row(const char* name, int rank, bool bias, Gelu form) {
  return {.op = "linear_gelu", .name = name, .draw = [=](Draw& draw) {
            const Shape x = draw.shape(rank);
            const std::int64_t out = draw.extent(35);
            Case drawn{{draw.normals(x, 0, 0.5), draw.normals({out, x.cols()}, 0, 0.5)}, [=](const auto& v) {
                         return linear_gelu(v[0], v[1], v.size() > 2 ? v[2] : std::decay_t<decltype(v[0])>(), form);
                       }};
            if (bias) drawn.inputs.push_back(draw.normals({out}));
            return drawn;
          }};
}

// A single output, in which the terms of the hidden layer cancel, may be close to 0; hence offset_floor.
Row gelu_feed_forward_row(const char* name, int rank, bool up_bias, bool down_bias, Gelu form) {
  return {.op = "gelu_feed_forward",
          .name = name,
          .draw =
              [=](Draw& draw) {
                const Shape x = draw.shape(rank);
                const std::int64_t hidden = draw.extent(35), out = draw.extent(35);
                Case drawn{
                    {draw.normals(x, 0, 0.5), draw.normals({hidden, x.cols()}, 0, 0.5), draw.normals({out, hidden})},
                    [=](const auto& v) {
                      const std::decay_t<decltype(v[0])> none;
                      return gelu_feed_forward(v[0], v[1], up_bias ? v[3] : none, v[2], down_bias ? v.back() : none,
                                               form);
                    }};
                if (up_bias) drawn.inputs.push_back(draw.normals({hidden}));
                if (down_bias) drawn.inputs.push_back(draw.normals({out}));
                return drawn;
              },
          .offset_floor = 0.5};
}

Row short_conv_row(const char* name, std::int64_t max_taps, std::int64_t max_tokens, bool sees_ahead) {
  return {.op = "short_conv", .name = name, .draw = [=](Draw& draw) {
            const std::int64_t width = draw.extent(35), taps = draw.integer(1, max_taps);
            const std::int64_t ahead = sees_ahead ? draw.integer(0, taps - 1) : 0;
            const Shape x{draw.integer(1, 3), draw.integer(1, max_tokens), width};
            return Case{{draw.normals(x), draw.normals({taps, width})},
                        [ahead](const auto& v) { return short_conv(v[0], v[1], ahead); }};
          }};
}

// Biases are not 0, because they are all that is left of a product over no columns.
Case empty_linear(const Shape& x, const Shape& weight) {
  return {{zeros(x, DType::float64), zeros(weight, DType::float64), full({weight[0]}, DType::float64, 0.5)},
          [](const auto& v) { return linear(v[0], v[1], v[2]); }};
}
Case empty_linear_gelu(const Shape& x, const Shape& weight) {
  return {{zeros(x, DType::float64), zeros(weight, DType::float64), full({weight[0]}, DType::float64, 0.5)},
          [](const auto& v) { return linear_gelu(v[0], v[1], v[2], Gelu::erf); }};
}
Case empty_feed_forward(const Shape& x, std::int64_t hidden, std::int64_t out) {
  return {{zeros(x, DType::float64), zeros({hidden, x.cols()}, DType::float64), full({out, hidden}, DType::float64, 1),
           full({hidden}, DType::float64, 0.5), full({out}, DType::float64, 0.25)},
          [](const auto& v) { return gelu_feed_forward(v[0], v[1], v[3], v[2], v[4], Gelu::erf); }};
}

// No rows, no columns in, no columns out, and no items of a batch.
template <class MakeCase>
void add_empty_products(Row& row, const MakeCase& make) {
  for (const auto& [x, weight] : std::initializer_list<std::pair<Shape, Shape>>{{{0, 3}, {2, 3}},
                                                                                {{2, 0}, {3, 0}},
                                                                                {{2, 3}, {0, 3}},
                                                                                {{0, 2, 3}, {4, 3}},
                                                                                {{0}, {2, 0}},
                                                                                {{0, 0}, {0, 0}}}) {
    row.empties.push_back([make, x = x, weight = weight] { return make(x, weight); });
  }
}

Case empty_short_conv(const Shape& x, std::int64_t taps) {
  return {{zeros(x, DType::float64), zeros({taps, x[2]}, DType::float64)},
          [](const auto& v) { return short_conv(v[0], v[1]); }};
}

}  // namespace

std::vector<Row> linear_rows() {
  std::vector<Row> rows = {
      matmul_row("2-D", false, false, 0, 0),
      matmul_row("a transposed", true, false, 0, 0),
      matmul_row("b transposed", false, true, 0, 0),
      matmul_row("both transposed", true, true, 0, 0),
      matmul_row("batched", false, false, 1, 1),
      matmul_row("two batch axes, both transposed", true, true, 2, 2),
      matmul_row("batched, b shared", false, true, 2, 0),
      matmul_row("batched, a shared", false, false, 0, 2),
      matmul_row("batched, a transposed, b shared", true, false, 1, 0),
      matmul_row("batched, b transposed, a transposed and shared", true, true, 0, 1),
      linear_row("no bias", 2, false),
      linear_row("bias", 2, true),
      linear_row("one row", 1, true),
      linear_row("leading axes", 3, true),
      linear_gelu_row("erf", 2, true, Gelu::erf),
      linear_gelu_row("tanh, leading axes, no bias", 3, false, Gelu::tanh),
      gelu_feed_forward_row("erf, no bias", 2, false, false, Gelu::erf),
      gelu_feed_forward_row("tanh, biases, leading axes", 3, true, true, Gelu::tanh),
      gelu_feed_forward_row("the bias of the first layer", 2, true, false, Gelu::erf),
      gelu_feed_forward_row("the bias of the second layer, one row", 1, false, true, Gelu::erf),
  };
  add_empty_products(rows[11], empty_linear);
  add_empty_products(rows[14], empty_linear_gelu);
  add_empty_products(rows[17], [](const Shape& x, const Shape& up) { return empty_feed_forward(x, up[0], 2); });
  rows[17].empties.push_back([] { return empty_feed_forward({2, 3}, 4, 0); });
  rows.push_back(short_conv_row("few tokens", 5, 6, false));
  rows.push_back(short_conv_row("few tokens, some of them ahead", 5, 6, true));
  rows.push_back(short_conv_row("several blocks of rows", 4, 50, true));
  rows.back().empties = {[] {
                           return empty_short_conv({0, 3, 4}, 2);
                         },
                         [] {
                           return empty_short_conv({2, 0, 4}, 2);
                         },
                         [] {
                           return empty_short_conv({2, 3, 0}, 1);
                         }};
  rows[0].empties = {[] {
                       return matmul_of({0, 3}, {3, 2});
                     },
                     [] {
                       return matmul_of({2, 0}, {0, 3});
                     },
                     [] {
                       return matmul_of({2, 3}, {3, 0});
                     },
                     [] {
                       return matmul_of({0, 2, 3}, {3, 4});
                     },
                     [] {
                       return matmul_of({2, 3}, {0, 3, 4});
                     }};
  return rows;
}

}  // namespace maki::tests
