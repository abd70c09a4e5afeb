// The values and gradients of every op in float64 against its definition in extended precision (definitions.h), as a
// whole and element by element.
#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::uint64_t kDefinitionSeeds = 2;  // each takes seconds

std::vector<Exact> exact(const std::vector<Tensor>& inputs) { return {inputs.begin(), inputs.end()}; }

// Σ cotangent · y, of which only the derivative is used.
definitions::Number contracted(const Exact& y, const Tensor& cotangent) {
  definitions::Number total = 0;
  for (std::int64_t i = 0; i < y.numel(); ++i) total += y[i] * static_cast<long double>(cotangent.at(i));
  return total;
}

Tensor real_part(const Exact& y) {
  Tensor values = empty(y.shape(), DType::float64);
  for (std::int64_t i = 0; i < y.numel(); ++i) values.data<double>()[i] = static_cast<double>(y[i].real());
  return values;
}

void require_agreement(const Row& row, const Tensor& got, const Tensor& expected) {
  REQUIRE(relative_error(got, expected, row.floor) <= row.definition_bound);
  REQUIRE(worst_element(got, expected) <= std::max(1e-7, row.definition_bound));
}

}  // namespace

TEST_CASE("an error in a small element shows in the worst element, and NaN in any") {
  const auto worst = [](double small, double large) {
    return worst_element(tensor<double>({small, 1000}, {2}), tensor<double>({1, large}, {2}));
  };
  REQUIRE(worst(1, 1000) == 0);
  REQUIRE(worst(1 + 1e-6, 1000) == Approx(1e-6));
  REQUIRE(worst(1, 1000 + 1e-3) == Approx(1e-6));
  REQUIRE(worst(-1, 1000) == Approx(2));
  REQUIRE(std::isnan(worst(std::nan(""), 1000)));
  REQUIRE(std::isnan(worst(1, std::nan(""))));
  REQUIRE(worst_element(tensor<double>({1e-12, 1}, {2}), tensor<double>({0, 1}, {2})) == Approx(1e-6));
}

TEST_CASE("every op agrees with its definition in extended precision, and its gradients with complex steps") {
  int gradients = 0;
  for (const Row& row : op_table()) {
    for (std::uint64_t seed = 0; seed < kDefinitionSeeds; ++seed) {
      Draw draw(seed + 2000);
      const Case drawn = row.draw(draw);
      INFO(describe(row, seed + 2000, drawn));
      REQUIRE(drawn.call.has_definition());
      BoundCase bound(drawn, DType::float64);
      const Evaluation evaluation = evaluate(bound);
      std::vector<Exact> inputs = exact(drawn.inputs);
      const Tensor expected = real_part(drawn.call.definition(inputs));
      require_agreement(row, evaluation.output, expected);
      std::size_t parameter = 0;
      for (std::size_t input = 0; row.differentiable && input < inputs.size(); ++input) {
        if (drawn.inputs[input].dtype() == DType::int32) continue;
        INFO("gradient of input " << input);
        const Tensor steps = complex_steps(
            inputs[input], [&] { return contracted(drawn.call.definition(inputs), cotangent(expected.shape())); });
        require_agreement(row, evaluation.gradients.at(parameter++), steps);
        ++gradients;
      }
    }
  }
  REQUIRE(gradients > 300);
}

TEST_CASE("the value of every op has the same bits whether or not gradients are asked for") {
  for (const Row& row : op_table()) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Draw draw(seed + 3000);
      const Case drawn = row.draw(draw);
      INFO(describe(row, seed + 3000, drawn));
      for (const DType dtype : {DType::float32, DType::float64}) {
        BoundCase all(drawn, dtype), none(drawn, dtype, [](std::size_t) { return false; });
        const Tensor value = evaluate(all).output;
        REQUIRE(same_bits(value, evaluate(none).output));
        for (std::size_t only = 0; all.store().parameters().size() > 1 && only < drawn.inputs.size(); ++only) {
          BoundCase alone(drawn, dtype, [&](std::size_t i) { return i == only; });
          REQUIRE(same_bits(value, evaluate(alone).output));
        }
        if (row.random) continue;
        const AsRecorded same_rounding;
        REQUIRE(same_bits(value, all.forward()));
      }
    }
  }
}
