// pow against long double: special values, exponents of every kind, and accuracy.
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/simd/target.h"
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/max_or_nan.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

// y and dx (for dy = 1) at some numbers.
Evaluation power_at(const std::vector<double>& x, double exponent, DType dtype) {
  const Tensor at = tensor(x, {static_cast<std::int64_t>(x.size())});
  BoundCase bound({{at}, [=](const std::vector<Tensor>& v) { return pow(v[0], exponent); }}, dtype);
  Tape tape;
  Evaluation result;
  {
    const Recording on(tape);
    result.output = bound.forward();
  }
  tape.backward(result.output, full(at.shape(), dtype, 1));
  result.gradients.push_back(bound.store().parameters()[0]->gradient().clone());
  return result;
}

// The largest relative error of y and dx, in units of 2^-24 (float) or 2^-53 (double).
double worst_error(const std::vector<double>& x, double exponent, DType dtype) {
  const Evaluation found = power_at(x, exponent, dtype);
  long double worst = 0;
  for (std::int64_t i = 0; i < found.output.numel(); ++i) {
    const long double at = x[static_cast<std::size_t>(i)];
    const long double y = std::pow(at, static_cast<long double>(exponent));
    const long double dx = exponent * std::pow(at, static_cast<long double>(exponent) - 1);
    worst = max_or_nan(worst, std::abs((found.output.at(i) - y) / y));
    worst = max_or_nan(worst, std::abs((found.gradients[0].at(i) - dx) / dx));
  }
  return static_cast<double>(worst) * (dtype == DType::float32 ? 0x1p24 : 0x1p53);
}

}  // namespace

TEST_CASE("pow at special values agrees with the C library, and a negative base with a fractional exponent gives NaN") {
  const std::vector<double> bases = {0, -0.0, 1, -1, 2, -2, 0.5, 1e-310, kInf, -kInf, kNaN};
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -3.0, 0.5, -0.5, 64.0, 65.0, 66.0, -65.0, 1e300, 2.5}) {
    const Tensor y = power_at(bases, exponent, DType::float64).output;
    for (std::size_t i = 0; i < bases.size(); ++i) {
      const bool fraction = std::trunc(exponent) != exponent;
      const double expected =
          fraction && bases[i] < 0 ? kNaN : std::pow(fraction ? std::abs(bases[i]) : bases[i], exponent);
      const double found = y.at(static_cast<std::int64_t>(i));
      INFO(bases[i] << " ^ " << exponent << " = " << found);
      if (std::isnan(expected)) {
        REQUIRE(std::isnan(found));
      } else if (std::isinf(expected) || expected == 0) {
        REQUIRE(found == expected);
        REQUIRE(std::signbit(found) == std::signbit(expected));
      } else {
        REQUIRE(found == Approx(expected).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("the derivative of pow at 0: finite, infinite, and 0 for the exponent 0") {
  const auto slope_at_0 = [](double exponent) { return power_at({0}, exponent, DType::float64).gradients[0].item(); };
  REQUIRE(slope_at_0(0) == 0);
  REQUIRE(slope_at_0(1) == 1);
  REQUIRE(slope_at_0(2) == 0);
  REQUIRE(slope_at_0(0.5) == kInf);
  REQUIRE(slope_at_0(1.5) == 0);
  REQUIRE(power_at({kNaN, kInf}, 0, DType::float64).gradients[0].at(0) == 0);
  REQUIRE(power_at({kNaN, kInf}, 0, DType::float64).gradients[0].at(1) == 0);
  REQUIRE_THROWS_WITH(pow(zeros({1}, DType::float32), kInf), ContainsSubstring("exponent must be finite"));
  REQUIRE_THROWS_WITH(pow(zeros({1}, DType::int32), 2), ContainsSubstring("int32"));
}

TEST_CASE("pow keeps its precision on every target") {
  Draw draw(1);
  std::vector<double> near, far;
  for (int i = 0; i < 300; ++i) {
    near.push_back(static_cast<double>(static_cast<float>(draw.uniform(0.3, 3))));
    far.push_back(static_cast<double>(static_cast<float>(std::exp(draw.uniform(-20, 20)))));
  }
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (const double exponent : {2.0, 3.0, -1.0, -3.0, 7.0, 0.5, -0.5, 1.7, -2.3, 15.0, -16.0, 20.5}) {
      INFO(target << ", exponent " << exponent);
      REQUIRE(worst_error(near, exponent, DType::float32) < 1.01);
      REQUIRE(worst_error(near, exponent, DType::float64) < 60);
      if (std::abs(exponent) > 2.5) continue;
      REQUIRE(worst_error(far, exponent, DType::float32) < 1.01);
      REQUIRE(worst_error(far, exponent, DType::float64) < 200);
    }
    REQUIRE(worst_error(near, 64, DType::float64) < 64);
    REQUIRE(worst_error({1e300, 1e-300, 1e150}, 1.02, DType::float64) < 1600);
  }
  kernels::force_target("");
  REQUIRE(power_at({3, -5, 7}, 5, DType::float64).output.at(1) == -3125);
}
