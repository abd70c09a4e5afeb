// Special values, saturation, and dropout: its statistics, and its mask, which is a function of the index only.
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/dropout.h"
#include "autograd/kernels/simd/target.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/max_or_nan.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

using UnaryOp = Tensor (*)(const Tensor&);

// y and dx (for dy = 1) of one number.
std::pair<double, double> evaluate_at(const std::function<Tensor(const Tensor&)>& op, double x, DType dtype) {
  BoundCase bound({{full({1}, DType::float64, x)}, [&](const std::vector<Tensor>& v) { return op(v[0]); }}, dtype);
  Tape tape;
  const Tensor y = [&] {
    const Recording on(tape);
    return bound.forward();
  }();
  tape.backward(y, full({1}, dtype, 1));
  return {y.item(), bound.store().parameters()[0]->gradient().at(0)};
}

void require_number(double found, double expected) {
  if (std::isnan(expected)) {
    REQUIRE(std::isnan(found));
  } else {
    REQUIRE(found == expected);
    REQUIRE(std::signbit(found) == std::signbit(expected));
  }
}

Tensor dropped(const Tensor& x, double p, const RandomContext& context = {}) {
  Tape tape;
  const Recording on(tape, context);
  return dropout(x, p);
}

}  // namespace

TEST_CASE("functions of one tensor at special values, and their derivatives there") {
  struct Expected {
    const char* name;
    UnaryOp op;
    double x, y, dx;
  };
  const std::vector<Expected> table = {
      {"exp", maki::exp, -kInf, 0, 0},
      {"exp", maki::exp, kInf, kInf, kInf},
      {"exp", maki::exp, kNaN, kNaN, kNaN},
      {"exp", maki::exp, -0.0, 1, 1},
      {"log", maki::log, 0, -kInf, kInf},
      {"log", maki::log, -1, kNaN, -1},
      {"log", maki::log, kInf, kInf, 0},
      {"sqrt", maki::sqrt, 0, 0, kInf},
      {"sqrt", maki::sqrt, -1, kNaN, kNaN},
      {"sqrt", maki::sqrt, kInf, kInf, 0},
      {"tanh", maki::tanh, kInf, 1, 0},
      {"tanh", maki::tanh, -kInf, -1, 0},
      {"tanh", maki::tanh, -0.0, -0.0, 1},
      {"sigmoid", sigmoid, kInf, 1, 0},
      {"sigmoid", sigmoid, -kInf, 0, 0},
      {"relu", relu, 0, 0, 0},
      {"relu", relu, -0.0, 0, 0},
      {"relu", relu, kInf, kInf, 1},
      {"relu", relu, -kInf, 0, 0},
      {"relu", relu, kNaN, kNaN, 1},
      {"relu_squared", relu_squared, 3, 9, 6},
      {"relu_squared", relu_squared, 0, 0, 0},
      {"relu_squared", relu_squared, -kInf, 0, 0},
      {"relu_squared", relu_squared, kInf, kInf, kInf},
      {"relu_squared", relu_squared, kNaN, kNaN, kNaN},
      {"silu", silu, kInf, kInf, 1},
      {"silu", silu, 0, 0, 0.5},
      {"neg", neg, 0, -0.0, -1},
      {"abs", maki::abs, 0, 0, 0},
      {"abs", maki::abs, -0.0, 0, -0.0},
      {"abs", maki::abs, -kInf, kInf, -1},
      {"abs", maki::abs, kNaN, kNaN, kNaN},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, -1, -1, 1},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, 2, 2, 1},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, -kInf, -1, 0},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, kInf, 2, 0},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, kNaN, kNaN, 1},
      {"clamp", [](const Tensor& x) { return clamp(x, -kInf, kInf); }, kInf, kInf, 1},
      {"clamp", [](const Tensor& x) { return clamp(x, 3, 3); }, 7, 3, 0},
  };
  for (const Expected& e : table) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      INFO(e.name << "(" << e.x << ") in " << to_string(dtype));
      const auto [y, dx] = evaluate_at(e.op, e.x, dtype);
      require_number(y, e.y);
      require_number(dx, e.dx);
    }
  }
}

TEST_CASE("derivatives keep their precision where the function saturates") {
  for (const double x : {-30.0, -12.0, -5.0, 3.0, 8.0, 15.0}) {
    const double e = std::exp(-std::abs(x));
    const double exact = e / ((1 + e) * (1 + e));  // of the sigmoid
    const double slope = evaluate_at(sigmoid, x, DType::float64).second;
    REQUIRE(std::abs(slope - exact) < 2e-16);
    if (x < 0) REQUIRE(slope == Approx(exact).epsilon(1e-14));
    const double sech = 1 / std::cosh(x);
    REQUIRE(std::abs(evaluate_at(maki::tanh, x, DType::float64).second - sech * sech) < 4e-16);
  }
  for (const Gelu form : {Gelu::erf, Gelu::tanh}) {
    for (const double x : {-1e30, -50.0, 50.0, 1e30}) {
      const auto [y, dx] = evaluate_at([form](const Tensor& v) { return gelu(v, form); }, x, DType::float32);
      REQUIRE(y == (x < 0 ? 0 : static_cast<double>(static_cast<float>(x))));
      REQUIRE(dx == (x < 0 ? 0 : 1));
    }
  }
}

TEST_CASE("the two forms of gelu differ by less than 1e-3") {
  double largest = 0;
  for (double x = -5; x <= 5; x += 0.01) {
    const Tensor v = full({1}, DType::float64, x);
    REQUIRE(gelu(v).item() == Approx(x * std::erfc(-x / std::sqrt(2.0)) / 2).margin(1e-15));
    largest = max_or_nan(largest, std::abs(gelu(v).item() - gelu(v, Gelu::tanh).item()));
  }
  REQUIRE(largest > 1e-4);
  REQUIRE(largest < 1e-3);
}

TEST_CASE("dropout drops a fraction p and keeps the mean") {
  constexpr std::int64_t kCount = 1 << 18;
  const Tensor ones = full({kCount}, DType::float32, 1);
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor y = dropped(ones, p, {.seed = 3});
    std::int64_t zeros_seen = 0, neighbours = 0;
    bool previous = false;
    for (const float value : y.values<float>()) {
      REQUIRE((value == 0 || value == static_cast<float>(1 / (1 - p))));
      const bool gone = value == 0;
      zeros_seen += gone;
      neighbours += gone && previous;
      previous = gone;
    }
    const double n = kCount, deviation = std::sqrt(p * (1 - p) / n);
    REQUIRE(std::abs(static_cast<double>(zeros_seen) / n - p) < 5 * deviation);
    REQUIRE(std::abs(static_cast<double>(neighbours) / n - p * p) < 10 * deviation);  // neighbours are independent
  }
}

TEST_CASE("dropout's mask is a function of the index: not of the size, type or target") {
  const Tensor long_mask = dropped(full({5000}, DType::float64, 1), 0.4);
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (const std::int64_t n : {1, 3, 17, 1023, 1024, 1025, 4099}) {
      const Tensor narrow = dropped(full({n}, DType::float32, 1), 0.4);
      const Tensor wide = dropped(full({n}, DType::float64, 1), 0.4);
      for (std::int64_t i = 0; i < n; ++i) {
        REQUIRE((narrow.at(i) == 0) == (long_mask.at(i) == 0));
        REQUIRE(wide.at(i) == long_mask.at(i));
      }
    }
  }
  kernels::force_target("");
}

TEST_CASE("dropout drops element i where word i of its stream is below p") {
  const RandomStream stream(5, RandomPurpose::dropout, 1, 2, 3);
  constexpr std::int64_t kCount = 5000;
  const double p = 0.37;
  const std::vector<float> ones(kCount, 1);
  std::vector<float> y(kCount, -1);
  kernels::dropout(kCount, ones.data(), p, stream, Sink<float>{y.data(), false});
  for (std::size_t i = 0; i < y.size(); ++i) {
    INFO("element " << i);
    REQUIRE((y[i] == 0) == (stream.bits(i) < p * 0x1p32));
  }
}

TEST_CASE("dropout is a function of seed, step, micro-batch and call") {
  const Tensor ones = full({256}, DType::float32, 1);
  const RandomContext base{.seed = 1, .step = 2, .micro_batch = 3};
  const Tensor first = dropped(ones, 0.5, base);
  REQUIRE(same_bits(first, dropped(ones, 0.5, base)));
  for (const RandomContext& other : {RandomContext{9, 2, 3}, RandomContext{1, 9, 3}, RandomContext{1, 2, 9}}) {
    REQUIRE_FALSE(same_bits(first, dropped(ones, 0.5, other)));
  }
  Tape tape;
  const Recording on(tape, base);
  REQUIRE(same_bits(first, dropout(ones, 0.5)));
  REQUIRE_FALSE(same_bits(first, dropout(ones, 0.5)));
}

TEST_CASE("dropout's backward uses the mask of the forward, which is not saved") {
  const Case drawn{{full({3000}, DType::float64, 2)}, [](const std::vector<Tensor>& x) { return dropout(x[0], 0.3); }};
  BoundCase bound(drawn, DType::float32);
  Tape tape;
  const Tensor y = [&] {
    const Recording on(tape);
    const std::int64_t before = storage_pool::statistics().bytes_in_use;
    const Tensor result = bound.forward();
    REQUIRE(storage_pool::statistics().bytes_in_use - before < 2 * 3000 * 4);  // the output alone
    return result;
  }();
  tape.backward(y, full({3000}, DType::float32, 1));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    REQUIRE(bound.store().parameters()[0]->gradient().at(i) == Approx(y.at(i) / 2));
  }
}

TEST_CASE("dropout without a recording or with p 0 is the identity, and a p below 0 or not below 1 is rejected") {
  const Tensor x = full({4}, DType::float32, 3);
  REQUIRE(same_bits(dropout(x, 0.5), x));
  REQUIRE(same_bits(dropped(x, 0), x));
  REQUIRE_THROWS_WITH(dropout(x, 1), ContainsSubstring("[0, 1)"));
  REQUIRE_THROWS_WITH(dropout(x, -0.1), ContainsSubstring("-0.1"));
  REQUIRE_THROWS_WITH(dropout(x, kNaN), ContainsSubstring("nan"));
}
