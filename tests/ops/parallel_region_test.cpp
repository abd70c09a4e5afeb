// Ops called by every thread of an OpenMP region that the caller opened. The loops of an op run serially there. The
// calling thread's number in the caller's team, which may be larger than threads(), must not be used by any op.
#include <atomic>
#include <exception>

#include "autograd/core/parallel.h"
#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

bool same(const Evaluation& a, const Evaluation& b) {
  if (!same_bits(a.output, b.output) || a.gradients.size() != b.gradients.size()) return false;
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    if (!same_bits(a.gradients[i], b.gradients[i])) return false;
  }
  return true;
}

/// The number of threads, of the eight in one region, that get the bits of a call outside of it.
int threads_that_agree(const Case& drawn, DType dtype) {
  BoundCase outside(drawn, dtype);
  const Evaluation wanted = evaluate(outside);
  std::atomic<int> agree = 0;
#pragma omp parallel num_threads(8)
  try {  // no exception may leave the region
    BoundCase bound(drawn, dtype);
    if (same(evaluate(bound), wanted)) ++agree;
  } catch (const std::exception&) {
  }
  return agree;
}

}  // namespace

TEST_CASE("parallel region: from every op, eight threads of the caller get the bits of a call outside") {
  const ThreadsScope two(2);
  for (const Row& row : op_table()) {
    for (std::uint64_t seed = 2000; seed < 2002; ++seed) {
      Draw draw(seed);
      const Case drawn = row.draw(draw);
      INFO(describe(row, seed, drawn));
      REQUIRE(threads_that_agree(drawn, DType::float32) == 8);
    }
  }
}

TEST_CASE("parallel region: the same for sizes whose loops would be distributed over threads") {
  const ThreadsScope two(2);
  Draw draw(3);
  const std::vector<Case> cases = {
      {{draw.normals({2, 300, 3 * 32})}, [](const auto& x) { return attention(x[0], {.n_head = 2, .causal = true}); }},
      {{draw.normals({1, 600, 3 * 16})}, [](const auto& x) { return attention(x[0], {.n_head = 1}); }},
      {{draw.normals({600, 70}), draw.normals({90, 70}), draw.normals({90})},
       [](const auto& x) { return linear(x[0], x[1], x[2]); }},
      {{draw.normals({10, 300}), draw.normals({700, 300}), draw.normals({700})},
       [](const auto& x) { return linear(x[0], x[1], x[2]); }},
      {{draw.normals({20, 70, 50}), draw.normals({20, 50, 60})}, [](const auto& x) { return matmul(x[0], x[1]); }},
  };
  for (const Case& drawn : cases) {
    INFO("first input " << drawn.inputs[0].shape()[0] << " x " << drawn.inputs[0].shape()[1]);
    for (const DType dtype : {DType::float32, DType::float64}) REQUIRE(threads_that_agree(drawn, dtype) == 8);
  }
}
