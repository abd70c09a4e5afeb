// The gradient of a whole model with respect to every parameter, in float64, against differences: with dropout, and in
// forms that gpt_definition_test.cpp does not have.
#include <cmath>

#include "autograd/gradcheck.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Requires an error below 1e-8 for every parameter of a model. The gradient of the key biases is mathematically zero (a
// softmax does not change when the same number is added to all scores) and must be below 1e-12 in absolute value.
void check_gradients(TransformerConfig config, std::uint64_t seed) {
  SmallGpt gpt(config, DType::float64);
  gpt.randomize(seed);
  const std::int64_t tokens = config.block_size;
  const Tensor ids = random_ids(2, tokens, config.vocab_size, seed + 1);
  const Tensor targets = random_ids(2, tokens, config.vocab_size, seed + 2);
  const auto loss = [&] { return gpt.model.loss(ids, targets); };
  GradcheckOptions options;
  // Measured over six seeds: the error of the differences, O(h⁴), reaches 5e-7 at a step of 1e-3, and 2e-9 at this one.
  options.step = 2.5e-4;
  options.seed = seed;
  options.random = {.seed = seed, .step = 3};
  const std::vector<GradcheckResult> results = gradcheck(gpt.store, loss, options);
  REQUIRE(results.size() == gpt.store.parameters().size());
  for (const GradcheckResult& result : results) {
    INFO(result.name << ": error " << result.error << ", worst " << result.worst << " " << result.worst_analytic
                     << " against " << result.worst_numeric);
    REQUIRE(result.compared == gpt.store.find(result.name).shape().numel());
    REQUIRE(result.passed(1e-8));
  }

  Tape tape;
  {
    const Recording on(tape, options.random);
    tape.backward(loss());
  }
  // Rotary positions turn a key's bias differently at each position, and a norm of keys divides it differently, so it
  // has a gradient.
  if (!config.bias || config.positions == Positions::rotary || config.qk_norm) return;
  for (std::int64_t layer = 0; layer < config.n_layer; ++layer) {
    const Tensor gradient = gpt.store.find("h." + std::to_string(layer) + ".attn.c_attn.bias").gradient();
    const std::int64_t c = config.n_embd;
    for (std::int64_t i = c; i < 2 * c; ++i) {
      REQUIRE(std::abs(gradient.at(i)) < 1e-12);
    }
    REQUIRE(std::abs(gradient.at(0)) > 1e-12);
    REQUIRE(std::abs(gradient.at(2 * c)) > 1e-12);
  }
}

constexpr TransformerConfig kTiny{.n_layer = 2, .n_head = 2, .n_embd = 8, .block_size = 5, .vocab_size = 7};

}  // namespace

TEST_CASE("gradient of a two-layer Gpt, tied and untied, with and without dropout") {
  for (const bool tied : {true, false}) {
    for (const double dropout : {0.0, 0.2}) {
      TransformerConfig config = kTiny;
      config.tie_weights = tied;
      config.dropout = dropout;
      INFO((tied ? "tied" : "untied") << ", dropout " << dropout);
      check_gradients(config, 31);
    }
  }
}

TEST_CASE("gradient of the other forms: without biases, post-norm, sinusoidal positions, each activation") {
  TransformerConfig config = kTiny;
  config.bias = false;
  config.norm_order = NormOrder::post;
  check_gradients(config, 41);
  config = kTiny;
  config.positions = Positions::sinusoidal;
  config.position_base = 100;
  config.activation = Activation::gelu_tanh;
  check_gradients(config, 42);
  config.activation = Activation::silu;
  check_gradients(config, 43);
}

TEST_CASE("gradient of a Gpt with gated activations and dropout") {
  TransformerConfig config = kTiny;
  config.activation = Activation::swiglu;
  config.dropout = 0.2;
  check_gradients(config, 44);
}
