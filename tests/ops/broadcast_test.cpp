// Broadcasting against NumPy's rules written out plainly: forward and backward at hundreds of random shapes, with small
// integers, whose results are exact.
#include <array>
#include <cmath>
#include <vector>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The index in an input of shape x that element i of the output, of shape y, is computed from.
std::int64_t source(const Shape& x, const Shape& y, std::int64_t i) {
  std::int64_t at = 0, stride = 1;
  for (int axis = 1; axis <= y.rank(); ++axis) {
    const std::int64_t place = i % y[-axis];
    i /= y[-axis];
    if (axis > x.rank()) continue;
    if (x[-axis] != 1) at += place * stride;
    stride *= x[-axis];
  }
  return at;
}

struct Op {
  const char* name;
  Tensor (*call)(const Tensor&, const Tensor&);
  double (*value)(double, double);
  double (*slope_a)(double, double);
  double (*slope_b)(double, double);
};
const std::array<Op, 4> kOps = {{
    {"add", add, [](double a, double b) { return a + b; }, [](double, double) { return 1.0; },
     [](double, double) { return 1.0; }},
    {"sub", sub, [](double a, double b) { return a - b; }, [](double, double) { return 1.0; },
     [](double, double) { return -1.0; }},
    {"mul", mul, [](double a, double b) { return a * b; }, [](double, double b) { return b; },
     [](double a, double) { return a; }},
    {"div", maki::div, [](double a, double b) { return a / b; }, [](double, double b) { return 1 / b; },
     [](double a, double b) { return -a / (b * b); }},
}};

// Numbers whose sums, products and quotients are exact: integers, and powers of two as divisors.
Tensor exact(Draw& draw, const Shape& shape, bool divisor) {
  Tensor x = draw.uniforms(shape, -8, 8);
  for (double& value : x.values<double>()) {
    value = divisor ? std::ldexp(value < 0 ? -1 : 1, static_cast<int>(value) % 2) : std::floor(value);
  }
  return x;
}

// Compares y, da and db of one case for equality; returns the number of elements compared.
std::int64_t compare(const Op& op, const Tensor& a, const Tensor& b, DType dtype) {
  const Case drawn{{a, b}, [&](const std::vector<Tensor>& x) { return op.call(x[0], x[1]); }};
  BoundCase bound(drawn, dtype);
  Tape tape;
  const Tensor y = [&] {
    const Recording on(tape);
    return bound.forward();
  }();
  REQUIRE(y.shape() == broadcast(op.name, a.shape(), b.shape()));
  Tensor cotangent = empty(y.shape(), DType::float64);
  for (std::int64_t i = 0; i < y.numel(); ++i) cotangent.data<double>()[i] = static_cast<double>(i * 7 % 5 - 2);
  tape.backward(y, convert(cotangent, dtype));
  std::vector<double> da(static_cast<std::size_t>(a.numel())), db(static_cast<std::size_t>(b.numel()));
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const std::int64_t at_a = source(a.shape(), y.shape(), i), at_b = source(b.shape(), y.shape(), i);
    wrong += y.at(i) != op.value(a.at(at_a), b.at(at_b));
    da[static_cast<std::size_t>(at_a)] += cotangent.at(i) * op.slope_a(a.at(at_a), b.at(at_b));
    db[static_cast<std::size_t>(at_b)] += cotangent.at(i) * op.slope_b(a.at(at_a), b.at(at_b));
  }
  const auto& parameters = bound.store().parameters();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    wrong += parameters[0]->gradient().at(i) != da[static_cast<std::size_t>(i)];
  }
  for (std::int64_t i = 0; i < b.numel(); ++i) {
    wrong += parameters[1]->gradient().at(i) != db[static_cast<std::size_t>(i)];
  }
  REQUIRE(wrong == 0);
  return y.numel() + a.numel() + b.numel();
}

}  // namespace

TEST_CASE("broadcasting agrees with the rules written out, at random shapes, on every target") {
  std::int64_t compared = 0;
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      Draw draw(seed);
      const Shape whole = draw.shape(static_cast<int>(draw.integer(0, 5)), 150);
      const Shape shape_a = draw.broadcastable(whole), shape_b = draw.coin() ? whole : draw.broadcastable(whole);
      const Op& op = kOps[seed % kOps.size()];
      const Tensor a = exact(draw, shape_a, false), b = exact(draw, shape_b, op.call == maki::div);
      INFO(target << ", " << op.name << ", seed " << seed << ": " << to_string(shape_a) << " " << to_string(shape_b));
      compared += compare(op, a, b, DType::float32) + compare(op, a, b, DType::float64);
    }
  }
  kernels::force_target("");
  REQUIRE(compared > 20000);
}

TEST_CASE("broadcasting of shapes beyond every block: several threads, many rows, sums over many blocks") {
  const std::pair<Shape, Shape> shapes[] = {
      {{700, 300}, {300}}, {{700, 300}, {700, 1}}, {{3, 40000}, {40000}},   {{3, 40000}, {3, 1}},
      {{50000}, {}},       {{70000, 3}, {3}},      {{40, 70, 50}, {70, 1}}, {{20, 1, 30, 1, 40}, {5, 1, 6, 1}}};
  for (const auto& pair : shapes) {
    Draw draw(3);
    const Tensor a = exact(draw, pair.first, false), b = exact(draw, pair.second, false);
    INFO(to_string(pair.first) << " " << to_string(pair.second));
    // All numbers are integers below 2^24, so float32 is exact, too.
    compare(kOps[0], a, b, DType::float32);
    compare(kOps[2], a, b, DType::float32);
    compare(kOps[2], b, a, DType::float64);
  }
}

TEST_CASE("the residual path copies nothing: add passes its gradient on") {
  const Case drawn{{full({64, 64}, DType::float32, 1), full({64, 64}, DType::float32, 2)},
                   [](const std::vector<Tensor>& x) { return add(scale(x[0], 1), scale(x[1], 1)); }};
  BoundCase bound(drawn, DType::float32);
  Tape tape;
  const Tensor y = [&] {
    const Recording on(tape);
    return bound.forward();
  }();
  const Tensor cotangent = full({64, 64}, DType::float32, 1);
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  std::int64_t after = -1;
  tape.observe([&](const Tape::Observed& op) {
    if (op.backward && std::string(op.name) == "add") after = storage_pool::statistics().bytes_in_use;
  });
  tape.backward(y, cotangent);
  REQUIRE(after >= 0);
  REQUIRE(after <= before);
  for (const auto& parameter : bound.store().parameters()) REQUIRE(parameter->gradient().at(17) == 1);
}

TEST_CASE("shapes that do not broadcast and mixed types are rejected with a message that names both") {
  const Tensor a = zeros({2, 3}, DType::float32), b = zeros({2}, DType::float32);
  REQUIRE_THROWS_WITH(add(a, b), ContainsSubstring("[2, 3] and [2]"));
  REQUIRE_THROWS_WITH(mul(a, zeros({3}, DType::float64)), ContainsSubstring("float32 and float64"));
  REQUIRE_THROWS_WITH(div(zeros({1}, DType::int32), zeros({1}, DType::int32)), ContainsSubstring("int32"));
  REQUIRE_THROWS_WITH(sub(a, Tensor()), ContainsSubstring("empty"));
}
