// The weights that are drawn are those of the model: weights times values give the output of the op, for every model.
#include "nn/attention_weights.h"

#include <cmath>
#include <limits>

#include "nn/models/encoder.h"
#include "nn/models/linear.h"
#include "tests/catch.h"
#include "tests/nn/small_seq2seq.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr double kTolerance = 1e-12;

double at(const Tensor& weights, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s) {
  const Shape& shape = weights.shape();
  return weights.data<double>()[((b * shape[1] + h) * shape[2] + t) * shape[3] + s];
}

// Requires that the weights of a call explain its output, sum to 1, and are 0 exactly where a query sees no key.
void require_weights(const ObservedAttention& call, const WeightOptions& options) {
  const Tensor weights = attention_weights(call, options);
  const Shape& shape = weights.shape();
  REQUIRE(shape == Shape{call.q.shape()[0], options.n_head, call.q.shape()[1], call.k.shape()[1]});
  REQUIRE(weights_error(weights, call) <= kTolerance);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t t = 0; t < shape[2]; ++t) {
        double sum = 0;
        for (std::int64_t s = 0; s < shape[3]; ++s) {
          REQUIRE((at(weights, b, h, t, s) != 0) == (!options.causal || s <= t));
          sum += at(weights, b, h, t, s);
        }
        REQUIRE(std::abs(sum - 1) <= kTolerance);
      }
    }
  }
}

ObservedAttention one_head(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v) {
  const auto column = [](const std::vector<double>& x) {
    return tensor(x, {1, static_cast<std::int64_t>(x.size()), 1});
  };
  return {.linear = false, .q = column(q), .k = column(k), .v = column(v), .y = column(q)};
}

}  // namespace

TEST_CASE("attention weights are the softmax of q·k / √D, and normalised products of linear attention") {
  // exp(q·k): 1, 2 and 4.
  ObservedAttention call = one_head({1, 1}, {0, std::log(2.0), std::log(4.0)}, {3, 5, 7});
  const Tensor softmax = attention_weights(call, {});
  for (std::int64_t t = 0; t < 2; ++t) {
    REQUIRE(std::abs(at(softmax, 0, 0, t, 0) - 1 / 7.0) <= kTolerance);
    REQUIRE(std::abs(at(softmax, 0, 0, t, 2) - 4 / 7.0) <= kTolerance);
  }
  REQUIRE(std::abs(weighted_values(softmax, call).data<double>()[0] - (3 + 10 + 28) / 7.0) <= 1e-11);
  // The last of two queries sees all three keys, the first one key less.
  const Tensor causal = attention_weights(call, {.causal = true});
  REQUIRE(std::abs(at(causal, 0, 0, 0, 1) - 2 / 3.0) <= kTolerance);
  REQUIRE(at(causal, 0, 0, 0, 2) == 0);
  REQUIRE(std::abs(at(causal, 0, 0, 1, 2) - 4 / 7.0) <= kTolerance);
  // Heads of four columns: scores are divided by 2.
  call.q = tensor(std::vector<double>{1, 1, 1, 1}, {1, 1, 4});
  call.k = tensor(std::vector<double>{0, 0, 0, 0, 0, 0, 0, 2 * std::log(3.0)}, {1, 2, 4});
  call.v = call.k;
  REQUIRE(std::abs(at(attention_weights(call, {}), 0, 0, 0, 1) - 3 / 4.0) <= kTolerance);

  call = one_head({2}, {1, 3}, {1, 1});
  call.linear = true;
  REQUIRE(std::abs(at(attention_weights(call, {}), 0, 0, 0, 1) - 3 / 4.0) <= kTolerance);
  REQUIRE(std::abs(at(attention_weights(call, {.floor = 16}), 0, 0, 0, 1) - 3 / 8.0) <= kTolerance);
  REQUIRE_THROWS_AS(attention_weights(call, {.n_head = 2}), Error);
}

TEST_CASE("the weights of every form of gpt give what its attention gave") {
  for (const TransformerConfig& config : gpt_variants()) {
    ParameterStore store(DType::float64);
    const Gpt gpt(Scope(store), config);
    store.seal(1);
    randomize(store, 2);
    const Tensor ids = random_ids(2, 9, config.vocab_size, 3);
    const std::int64_t share = config.n_kv_head > 0 ? config.n_head / config.n_kv_head : 1;
    const auto calls = observe_attention([&] { gpt.hidden(ids); }, share);
    REQUIRE(std::ssize(calls) == config.n_layer);
    for (const ObservedAttention& call : calls) {
      REQUIRE_FALSE(call.linear);
      require_weights(call, {.n_head = config.n_head, .causal = true});
      // The check finds wrong options.
      REQUIRE(weights_error(attention_weights(call, {.n_head = config.n_head}), call) > 1e-3);
      if (share == 1) REQUIRE(weights_error(attention_weights(call, {.n_head = 1, .causal = true}), call) > 1e-3);
      if (share > 1) REQUIRE_THROWS_AS(attention_weights(call, {.n_head = 1}), Error);
    }
  }
  REQUIRE(Tape::current() == nullptr);
}

TEST_CASE("the weights of linear attention give what it gave, for every feature map") {
  for (const char* const form : {"elu", "random:7", "nystrom:5"}) {
    ParameterStore store(DType::float64);
    const LinearModel model(Scope(store), {kSmall, parse_attention(form)});
    store.seal(1);
    const Tensor ids = random_ids(2, 9, kSmall.vocab_size, 3);
    const auto calls = observe_attention([&] { model.hidden(ids); });
    REQUIRE(std::ssize(calls) == kSmall.n_layer);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      INFO(form);
      REQUIRE(calls[i].linear);
      require_weights(calls[i], {.n_head = kSmall.n_head, .causal = true, .floor = model.maps[i].floor()});
    }
  }
}

TEST_CASE("the weights of an encoder and of an encoder–decoder give what their attention gave") {
  ParameterStore store(DType::float64);
  const Encoder encoder(Scope(store), EncoderConfig{kSmall});
  store.seal(1);
  randomize(store, 2);
  for (const ObservedAttention& call : observe_attention([&] { encoder.hidden(random_ids(2, 9, 7, 3)); }))
    require_weights(call, {.n_head = 2});

  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    SmallSeq2Seq small(config, DType::float64);
    small.randomize(2);
    const Tensor source = random_ids(1, 8, config.source_vocab_size, 4), ids = random_ids(1, 5, config.vocab_size, 5);
    const auto calls = observe_attention([&] { small.model.decode(ids, small.model.encode(source)); });
    // Two layers of the encoder, then self-attention and cross-attention of two layers of the decoder.
    REQUIRE(calls.size() == 6);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      require_weights(calls[i], {.n_head = 2, .causal = i == 2 || i == 4});
      REQUIRE(calls[i].q.shape()[1] == (i < 2 ? 8 : 5));
      REQUIRE(calls[i].k.shape()[1] == (i == 2 || i == 4 ? 5 : 8));
    }
  }
}

TEST_CASE("weights that do not explain an output, or that are not numbers, are noticed") {
  ObservedAttention call = one_head({1}, {0, 0}, {2, 4});
  call.y = tensor(std::vector<double>{3}, {1, 1, 1});
  const Tensor weights = attention_weights(call, {});
  REQUIRE(weights_error(weights, call) <= kTolerance);
  call.y.data<double>()[0] = 5;
  REQUIRE(std::abs(weights_error(weights, call) - 0.5) <= kTolerance);
  call.y.data<double>()[0] = std::numeric_limits<double>::quiet_NaN();
  REQUIRE(std::isnan(weights_error(weights, call)));
}

TEST_CASE("without a floor, products whose sum is negative are divided by it") {
  ObservedAttention call = one_head({-1, -1}, {1, 2}, {3, 5});
  call.linear = true;
  const Tensor weights = attention_weights(call, {.n_head = 1});
  REQUIRE(at(weights, 0, 0, 0, 0) == Approx(1.0 / 3));
  REQUIRE(at(weights, 0, 0, 0, 1) == Approx(2.0 / 3));
}
