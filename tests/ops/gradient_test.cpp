// The gradients of every op against four-point differences, in float64, through the production code.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "autograd/gradcheck.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Checks one bound case. Returns the number of inputs whose gradient is not zero, so that a driver can require some.
int require_gradients(const Row& row, BoundCase& bound) {
  int nonzero = 0;
  const GradcheckOptions options{.step = row.step, .floor = row.floor, .random = kRandom};
  for (const GradcheckResult& result : gradcheck(
           bound.store(), [&] { return bound.forward(); }, options)) {
    INFO(result.name << " " << to_string(result.shape) << ": error " << result.error << ", worst at " << result.worst
                     << ": backward " << result.worst_analytic << ", differences " << result.worst_numeric);
    REQUIRE(result.passed(row.bound));
    if (result.numeric_norm > row.floor) ++nonzero;
  }
  return nonzero;
}

// The number of threads for a seed. Bits do not depend on it, as other tests require, and one thread takes half the
// time.
int threads_for(std::uint64_t seed) { return seed < 4 ? threads() : 1; }

// Names of the functions in ops.h that return a Tensor.
std::set<std::string> declared_ops() {
  std::ifstream file(MAKI_SOURCE_DIR "/autograd/ops.h");
  std::set<std::string> names;
  const std::regex declaration(R"(^Tensor (\w+)\()");
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_search(line, match, declaration)) names.insert(match[1]);
  }
  return names;
}

}  // namespace

TEST_CASE("every op of ops.h has a row in the table, and every row is of such an op") {
  const std::set<std::string> declared = declared_ops();
  REQUIRE(declared.size() >= 20);
  std::set<std::string> tested;
  for (const Row& row : op_table()) tested.insert(row.op);
  REQUIRE(tested == declared);
}

TEST_CASE("the gradient of every op, with all inputs together and with each alone") {
  for (const Row& row : op_table()) {
    if (!row.differentiable) continue;
    int nonzero = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const ThreadsScope scope(threads_for(seed));
      Draw draw(seed);
      const Case drawn = row.draw(draw);
      INFO(describe(row, seed, drawn));
      BoundCase all(drawn, DType::float64);
      const std::size_t inputs = all.store().parameters().size();
      REQUIRE(inputs > 0);
      nonzero += require_gradients(row, all);
      if (inputs == 1) continue;
      const std::vector<Tensor> together = evaluate(all).gradients;
      std::size_t compared = 0;
      for (std::size_t only = 0; only < drawn.inputs.size(); ++only) {
        BoundCase alone(drawn, DType::float64, [&](std::size_t i) { return i == only; });
        if (alone.store().parameters().empty()) continue;
        INFO("input " << only << " alone");
        const Tensor gradient = evaluate(alone).gradients.at(0);
        REQUIRE(relative_error(gradient, together.at(compared++), std::max(row.floor, 1e-300)) <= row.bound);
      }
      REQUIRE(compared == inputs);
    }
    INFO(row.op << " (" << row.name << ")");
    REQUIRE(nonzero > 0);
  }
}

TEST_CASE("the gradient of every op whose inputs can be the same tensor") {
  int rows = 0;
  for (const Row& row : op_table()) {
    if (!row.differentiable) continue;
    bool counted = false;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const ThreadsScope scope(threads_for(seed));
      Draw draw(seed);
      Case drawn = row.draw(draw);
      for (std::size_t i = 0; i < drawn.inputs.size(); ++i) {
        for (std::size_t j = i + 1; j < drawn.inputs.size(); ++j) {
          const Tensor &a = drawn.inputs[i], &b = drawn.inputs[j];
          if (!a || !b || a.dtype() == DType::int32 || b.dtype() == DType::int32 || a.shape() != b.shape()) continue;
          // Input j is replaced by the handle of input i, so that both deliver to one gradient.
          Case twice{{}, [&, i, j](const std::vector<Tensor>& x) {
                       std::vector<Tensor> inputs = x;
                       inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(j), x[i]);
                       return drawn.call(inputs);
                     }};
          twice.inputs = drawn.inputs;
          twice.inputs.erase(twice.inputs.begin() + static_cast<std::ptrdiff_t>(j));
          INFO(describe(row, seed, drawn) << ", input " << j << " is input " << i);
          BoundCase bound(twice, DType::float64);
          require_gradients(row, bound);
          counted = true;
        }
      }
    }
    rows += counted ? 1 : 0;
  }
  REQUIRE(rows >= 5);
}

TEST_CASE("an op without a gradient records nothing, all others do") {
  int rows = 0;
  for (const Row& row : op_table()) {
    Draw draw(0);
    BoundCase bound(row.draw(draw), DType::float64);
    INFO(row.op << " (" << row.name << ")");
    REQUIRE(evaluate(bound).output.requires_grad() == row.differentiable);
    rows += row.differentiable ? 0 : 1;
  }
  REQUIRE(rows >= 2);
}
