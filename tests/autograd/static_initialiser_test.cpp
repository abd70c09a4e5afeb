// A program may use the library in its own static initialisers, before main().
#include "autograd/kernels/simd/target.h"
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"

using namespace maki;

namespace {

struct Trained {
  std::string target, error;
  double loss = 0, gradient = 0;
};

// One loss and its gradient, through an op of every family. noexcept: an exception must not escape a static
// initialiser.
Trained train() noexcept {
  Trained result;
  try {
    ParameterStore store;
    Parameter& weight = store.add("weight", {12, 4}, init::normal(1));
    store.seal(1);
    const Tensor ids = tensor(std::vector<std::int32_t>{0, 5, 11, 7}, {1, 4});
    Tape tape;
    const Tensor loss = [&] {
      const Recording on(tape, {.seed = 1});
      const Tensor x = layer_norm(embedding(weight, ids));
      const Tensor y = attention(x, concat({x, gelu(x)}, -1), {.n_head = 2, .causal = true, .dropout = 0.1});
      return linear_cross_entropy(dropout(softmax(linear(y, slice(weight, 0, 0, 4))), 0.1), weight, ids);
    }();
    tape.backward(loss);
    result = {kernels::target(), "", loss.item(), sum(mul(weight.gradient(), weight.gradient())).item()};
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  return result;
}

const Trained before_main = train();

}  // namespace

TEST_CASE("a program may use the library in its static initialisers") {
  const Trained now = train();
  REQUIRE(before_main.error.empty());
  REQUIRE(before_main.target == now.target);
  REQUIRE(before_main.loss == now.loss);
  REQUIRE(before_main.gradient == now.gradient);
  REQUIRE(now.gradient > 0);
}
