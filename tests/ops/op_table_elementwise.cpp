#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "tests/ops/op_table.h"

namespace maki::tests {
namespace {

using Values = std::function<Tensor(Draw&, const Shape&)>;

Tensor normal(Draw& draw, const Shape& shape) { return draw.normals(shape); }
Tensor divisor(Draw& draw, const Shape& shape) { return draw.away_from_zero(shape, 0.5, 2); }
Tensor positive(Draw& draw, const Shape& shape) { return draw.uniforms(shape, 0.4, 3); }
Tensor off_the_kink(Draw& draw, const Shape& shape) { return draw.away_from_zero(shape, 0.01, 2); }  // 4 h = 0.004

// At least 0.01 away from the two bounds of clamp.
constexpr double kClampLow = -0.5, kClampHigh = 0.75;
Tensor off_the_bounds(Draw& draw, const Shape& shape) {
  Tensor x = draw.uniforms(shape, -2, 2);
  for (double& value : x.values<double>()) {
    for (const double bound : {kClampLow, kClampHigh}) {
      if (std::abs(value - bound) < 0.01) value += 0.03;
    }
  }
  return x;
}

// For larger |x| the derivative, 1 − y² of the saved output, loses precision in float32 by cancellation.
Tensor unsaturated(Draw& draw, const Shape& shape) { return draw.uniforms(shape, -1.5, 1.5); }

enum class Stretched { neither, left, right, both };

// Two shapes that broadcast to a common one.
std::pair<Shape, Shape> shapes(Draw& draw, Stretched stretched) {
  const Shape whole = draw.shape(static_cast<int>(draw.integer(1, 4)), 120);
  switch (stretched) {
    case Stretched::neither:
      return {whole, whole};
    case Stretched::left:
      return {draw.broadcastable(whole), whole};
    case Stretched::right:
      return {whole, draw.broadcastable(whole)};
    case Stretched::both:
      break;
  }
  return {draw.broadcastable(whole), draw.broadcastable(whole)};
}

template <class Op>
Case two(const Op& op, const Tensor& a, const Tensor& b) {
  return {{a, b}, [op](const auto& x) { return op(x[0], x[1]); }};
}

template <class Op>
void add_binary(std::vector<Row>& rows, const char* name, const Op& op, const Values& values_b) {
  const std::pair<const char*, Stretched> kinds[] = {{"equal shapes", Stretched::neither},
                                                     {"left stretched", Stretched::left},
                                                     {"right stretched", Stretched::right},
                                                     {"both stretched", Stretched::both}};
  for (const auto& kind : kinds) {
    const Stretched stretched = kind.second;
    // With equal shapes a driver passes one tensor as both inputs, so a must be as far from 0 as a divisor.
    const Values values_a = stretched == Stretched::neither ? values_b : Values(normal);
    rows.push_back({.op = name, .name = kind.first, .draw = [=](Draw& draw) {
                      const std::pair<Shape, Shape> s = shapes(draw, stretched);
                      const Tensor a = values_a(draw, s.first), b = values_b(draw, s.second);
                      return two(op, a, b);
                    }});
  }
  // The common broadcasts (row of a bias, column, scalar on either side), at sizes with whole vectors and a tail.
  const std::pair<Shape, Shape> common[] = {{{9, 37}, {37}}, {{9, 37}, {9, 1}}, {{5, 33}, {}},
                                            {{}, {5, 33}},   {{37}, {9, 37}},   {{3, 1, 19}, {4, 1}}};
  rows.push_back({.op = name, .name = "row, column or scalar", .draw = [=](Draw& draw) {
                    const auto& pair = common[static_cast<std::size_t>(draw.integer(0, 5))];
                    const Tensor a = draw.normals(pair.first), b = values_b(draw, pair.second);
                    return two(op, a, b);
                  }});
  const auto of = [op](const Shape& a, const Shape& b) {
    return [=] { return two(op, full(a, DType::float64, 1), full(b, DType::float64, 1)); };
  };
  rows.back().empties = {of({0}, {0}),       of({3, 0}, {0}),    of({0, 4}, {4}),
                         of({0, 4}, {1, 4}), of({2, 0}, {2, 1}), of({}, {0, 5})};
}

template <class Op>
Case one(const Op& op, const Tensor& x) {
  return {{x}, [op](const auto& v) { return op(v[0]); }};
}

template <class Op>
Row unary_row(const char* name, const char* variant, const Values& values, const Op& op) {
  return {.op = name,
          .name = variant,
          .draw =
              [=](Draw& draw) {
                const Shape shape = draw.shape(static_cast<int>(draw.integer(0, 3)), 150);
                return one(op, values(draw, shape));
              },
          .empties = {[=] { return one(op, zeros({0}, DType::float64)); },
                      [=] {
                        return one(op, zeros({2, 0, 3}, DType::float64));
                      }}};
}

Case chosen(const Tensor& mask, const Tensor& a, const Tensor& b) {
  return {{mask, a, b}, [](const auto& x) { return where(x[0], x[1], x[2]); }};
}

Row where_row(const char* name, bool stretched) {
  return {.op = "where", .name = name, .draw = [=](Draw& draw) {
            const Shape whole = draw.shape(static_cast<int>(draw.integer(1, 4)), 120);
            const auto part = [&] { return stretched ? draw.broadcastable(whole) : whole; };
            const Tensor mask = draw.integers(part(), -1, 1), a = draw.normals(part());
            return chosen(mask, a, draw.normals(part()));
          }};
}

void add_choices(std::vector<Row>& rows) {
  rows.push_back(
      unary_row("clamp", "both bounds", off_the_bounds, [](const auto& x) { return clamp(x, kClampLow, kClampHigh); }));
  rows.push_back(unary_row("clamp", "only from below", off_the_bounds,
                           [](const auto& x) { return clamp(x, kClampLow, std::numeric_limits<double>::infinity()); }));
  rows.push_back(where_row("equal shapes", false));
  rows.push_back(where_row("stretched", true));
  const auto of = [](const Shape& mask, const Shape& a, const Shape& b) {
    return [=] { return chosen(zeros(mask, DType::int32), zeros(a, DType::float64), zeros(b, DType::float64)); };
  };
  rows.back().empties = {of({0}, {0}, {}), of({}, {3, 0}, {1, 1}), of({0, 1}, {4}, {1, 4}), of({2, 1}, {2, 0}, {2, 1})};
}

void add_gates(std::vector<Row>& rows) {
  const auto gated = [](const Tensor& a, const Tensor& b, const Tensor& gate) {
    return Case{{a, b, gate}, [](const auto& x) { return add_gated(x[0], x[1], x[2]); }};
  };
  const auto drawn = [gated](Draw& draw, const Shape& shape) {
    const Tensor a = draw.normals(shape), b = draw.normals(shape);
    return gated(a, b, draw.normals(shape.with(-1, 1)));
  };
  rows.push_back({.op = "add_gated", .name = "leading axes", .draw = [drawn](Draw& draw) {
                    return drawn(draw, draw.shape(static_cast<int>(draw.integer(1, 4)), 120));
                  }});
  const auto of = [gated](const Shape& shape) {
    return [=] {
      const Tensor a = zeros(shape, DType::float64);
      return gated(a, a, zeros(shape.with(-1, 1), DType::float64));
    };
  };
  rows.back().empties = {of({0}), of({0, 3}), of({2, 0})};
  rows.push_back({.op = "add_gated", .name = "many rows", .draw = [drawn](Draw& draw) {
                    return drawn(draw, {draw.integer(64, 70), draw.integer(1, 3)});
                  }});
}

// Rows of an even number of columns, gate‖up.
void add_swiglu(std::vector<Row>& rows) {
  const auto packed = [](int rank, double std) {
    return [=](Draw& draw) {
      const Shape shape = draw.shape(rank, 120);
      return Case{{draw.normals(shape.with(-1, 2 * shape.cols()), 0, std)}, [](const auto& x) { return swiglu(x[0]); }};
    };
  };
  rows.push_back({.op = "swiglu", .name = "leading axes", .draw = packed(3, 1)});
  rows.push_back({.op = "swiglu", .name = "one row, far out", .draw = packed(1, 4)});
  const auto of = [](const Shape& shape) {
    return [=] { return Case{{zeros(shape, DType::float64)}, [](const auto& x) { return swiglu(x[0]); }}; };
  };
  rows.back().empties = {of({0, 6}), of({3, 0}), of({2, 0, 4})};
}

void add_powers(std::vector<Row>& rows) {
  const auto power = [](double exponent) { return [=](const auto& x) { return pow(x, exponent); }; };
  rows.push_back(unary_row("pow", "square", normal, power(2)));
  rows.push_back(unary_row("pow", "cube", normal, power(3)));
  rows.push_back(unary_row("pow", "whole, negative", divisor, power(-3)));
  rows.push_back(unary_row("pow", "fraction", positive, power(2.6)));
  rows.push_back(unary_row("pow", "negative fraction", positive, power(-1.3)));
  rows.push_back(unary_row(
      "pow", "far from 1", [](Draw& draw, const Shape& shape) { return draw.uniforms(shape, 0.97, 1.03); },
      power(-100.5)));
  rows.back().step = 1e-5;  // its fifth derivative is 1e10 times its value
  rows.back().offset_std = 0.1;
}

}  // namespace

std::vector<Row> elementwise_rows() {
  std::vector<Row> rows;
  add_binary(rows, "add", MAKI_OVERLOADS(add), normal);
  add_binary(rows, "sub", MAKI_OVERLOADS(sub), normal);
  add_binary(rows, "mul", MAKI_OVERLOADS(mul), normal);
  add_binary(rows, "div", MAKI_OVERLOADS(div), divisor);
  rows.push_back(unary_row("neg", "", normal, MAKI_OVERLOADS(neg)));
  rows.push_back(unary_row("scale", "by -1.7", normal, [](const auto& x) { return scale(x, -1.7); }));
  rows.push_back(unary_row("exp", "", normal, MAKI_OVERLOADS(exp)));
  rows.push_back(unary_row("log", "away from 0", positive, MAKI_OVERLOADS(log)));
  rows.push_back(unary_row("sqrt", "away from 0", positive, MAKI_OVERLOADS(sqrt)));
  rows.push_back(unary_row("tanh", "|x| < 1.5", unsaturated, MAKI_OVERLOADS(tanh)));
  rows.back().offset_std = 0.1;
  rows.push_back(unary_row("sigmoid", "", normal, MAKI_OVERLOADS(sigmoid)));
  rows.back().offset_std = 0.1;
  rows.push_back(unary_row("relu", "off the kink", off_the_kink, MAKI_OVERLOADS(relu)));
  rows.push_back(unary_row("relu_squared", "off the kink", off_the_kink, MAKI_OVERLOADS(relu_squared)));
  rows.push_back(unary_row("silu", "", normal, MAKI_OVERLOADS(silu)));
  rows.push_back(unary_row("elu_plus_one", "off the kink", off_the_kink, MAKI_OVERLOADS(elu_plus_one)));
  rows.push_back(unary_row("gelu", "erf", normal, [](const auto& x) { return gelu(x); }));
  rows.push_back(unary_row(
      "gelu", "erf, far out", [](Draw& draw, const Shape& shape) { return draw.normals(shape, 0, 3); },
      [](const auto& x) { return gelu(x); }));
  rows.push_back(unary_row("gelu", "tanh", normal, [](const auto& x) { return gelu(x, Gelu::tanh); }));
  rows.push_back(unary_row("abs", "off the kink", off_the_kink, MAKI_OVERLOADS(abs)));
  add_gates(rows);
  add_swiglu(rows);
  add_powers(rows);
  add_choices(rows);
  rows.push_back(unary_row("convert", "to float64", normal, [](const auto& x) { return convert(x, DType::float64); }));
  // The differences contain the rounding to float32, so their step is wide. The op is linear, so that costs nothing.
  rows.push_back(unary_row("convert", "to float32 and back", normal,
                           [](const auto& x) { return convert(convert(x, DType::float32), DType::float64); }));
  rows.back().step = 1;
  rows.back().bound = 1e-5;
  rows.back().definition_bound = 1e-7;
  rows.push_back(unary_row("dropout", "p 0.3", normal, [](const auto& x) { return dropout(x, 0.3); }));
  rows.back().random = true;
  rows.push_back(unary_row("dropout", "p 0, scaled", normal, [](const auto& x) { return scale(dropout(x, 0), 2); }));
  return rows;
}

}  // namespace maki::tests
