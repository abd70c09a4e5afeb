// The parts of a block that GPT-2 does not have: where a model with them begins, what they leave alone, and generation
// step by step with linear attention. What they compute: layers_test.cpp; bits of generation: kv_cache_test.cpp.
#include <cmath>

#include "nn/models/linear.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

TransformerConfig with_extras() {
  TransformerConfig config = kSmall;
  add_extras(config);
  return config;
}

}  // namespace

TEST_CASE("a causal convolution begins with the token itself and random parts of the tokens before it") {
  ParameterStore store(DType::float64);
  const ShortConv conv(Scope(store), 500, 5, /*causal=*/true);
  store.seal(1);
  const Tensor& weight = conv.weight.value();
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 2500; ++i) {
    if (i < 500) REQUIRE(weight.at(i) == 1);
    sum += i < 500 ? 0 : weight.at(i) / 2000;
    squares += i < 500 ? 0 : weight.at(i) * weight.at(i) / 2000;
  }
  REQUIRE(std::abs(sum) < 0.05);
  REQUIRE(std::sqrt(squares) == Approx(0.5).epsilon(0.05));
}

TEST_CASE("a convolution that is not causal has its own token in the middle, and sees those around it") {
  for (const std::int64_t width : {2, 5}) {
    ParameterStore store(DType::float64);
    const ShortConv conv(Scope(store), 3, width, /*causal=*/false);
    store.seal(1);
    const std::int64_t later = width / 2, earlier = width - 1 - later;
    for (std::int64_t k = 0; k < width; ++k) REQUIRE((conv.weight.value().at(3 * k) == 1) == (k == later));
    Tensor x = zeros({1, 9, 3}, DType::float64);
    x.data<double>()[3 * 4] = 1;  // of token 4 alone
    const Tensor y = conv(x);
    for (std::int64_t t = 0; t < 9; ++t) {
      INFO("width " << width << ", token " << t);
      REQUIRE((y.at(3 * t) != 0) == (t >= 4 - later && t <= 4 + earlier));
    }
  }
}

TEST_CASE("with zero projections, every block of a new model is the identity") {
  TransformerConfig config = kSmall;
  config.zero_projections = true;
  SmallGpt plain(kSmall), gpt(config);
  const Tensor ids = random_ids(2, 9, 7, 5);
  const Tensor x = gpt.model.wte(ids), h = gpt.model.h[0](gpt.model.h[1](x));
  REQUIRE(same_bits(h, x));
  for (const auto& parameter : gpt.store.parameters()) {
    const bool projection = parameter->name().ends_with("c_proj.weight");
    INFO(parameter->name());
    if (projection) {
      for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) REQUIRE(parameter->value().at(i) == 0);
    } else {
      REQUIRE(same_bits(parameter->value(), plain.store.find(parameter->name()).value()));
    }
  }
}

TEST_CASE("with a norm of queries and keys, their scale has no effect") {
  TransformerConfig config = kSmall;
  config.qk_norm = true;
  SmallGpt gpt(config, DType::float64), plain(kSmall, DType::float64);
  const Tensor ids = random_ids(2, 9, 7, 5);
  for (SmallGpt* const each : {&gpt, &plain}) {
    each->randomize(4);
    const Tensor before = each->model.logits(ids);
    const Parameter& weight = each->store.find("h.0.attn.c_attn.weight");
    const Parameter& bias = each->store.find("h.0.attn.c_attn.bias");
    double* const values = each->store.values().data<double>();
    for (std::int64_t i = 0; i < 24 * 12; ++i) values[weight.offset() + i] *= 50;  // rows of q and k
    for (std::int64_t i = 0; i < 24; ++i) values[bias.offset() + i] *= 50;
    each->store.mark_changed();
    const double change = largest_difference(each->model.logits(ids), before);
    INFO(describe(each->model.config) << ": " << change);
    REQUIRE((each->model.config.qk_norm ? change < 1e-4 : change > 1e-2));  // 1e-5 is added to the mean square
  }
}

TEST_CASE("linear attention with all extras: step by step equals the parallel pass, also after a reordering") {
  for (const std::int64_t conv_width : {2, 5}) {
    TransformerConfig config = with_extras();
    config.conv_width = conv_width;
    config.ngram_orders = {2, 3}, config.ngram_rows = 50;
    ParameterStore store(DType::float64);
    const LinearModel model(Scope(store), {config, parse_attention("elu")});
    store.seal(1);
    randomize(store, 8);
    const Tensor ids = random_ids(3, 9, 7, 9), all = model.logits(ids);
    for (const std::int64_t piece : {1, 2, 4}) {
      const std::unique_ptr<State> state = model.start(3);
      for (int pass = 0; pass < 2; ++pass) {
        for (std::int64_t begin = 0; begin < 9; begin += piece) {
          const std::int64_t end = std::min<std::int64_t>(9, begin + piece);
          const Tensor logits = model.next_logits(columns(ids, begin, end), *state);
          INFO("tokens " << begin << " to " << end << ", pass " << pass);
          REQUIRE(largest_difference(logits, reshape(slice(all, 1, end - 1, end), {3, 7})) < 1e-12);
        }
        state->clear();
      }
      model.next_logits(columns(ids, 0, 8), *state);
      const std::vector<std::int32_t> rows = {2, 0, 2};
      state->reorder(rows);
      const Tensor logits = model.next_logits(columns(rows_of(ids, rows), 8, 9), *state);
      REQUIRE(largest_difference(logits, rows_of(reshape(slice(all, 1, 8, 9), {3, 7}), rows)) < 1e-12);
    }
  }
}

TEST_CASE("a cache of a model with convolutions can be reordered, and rows be repeated") {
  SmallGpt gpt(with_extras());
  gpt.randomize(7);
  const Tensor ids = random_ids(2, 9, 7, 9), all = gpt.model.logits(ids);
  KvCache cache = gpt.model.make_cache(2);
  gpt.model.next_logits(columns(ids, 0, 6), cache);
  const std::vector<std::int32_t> rows = {1, 0, 1};
  cache.reorder(rows);
  const Tensor logits = gpt.model.next_logits(columns(rows_of(ids, rows), 6, 9), cache);
  for (std::int64_t b = 0; b < 3; ++b) {
    REQUIRE(same_bits(logits, b * 7, all, (rows[static_cast<std::size_t>(b)] * 9 + 8) * 7, 7));
  }
}

TEST_CASE("tokens that are refused leave no trace in the inputs of convolutions") {
  TransformerConfig config = with_extras();
  config.positions = Positions::none;
  SmallGpt gpt(config);
  gpt.randomize(7);
  ParameterStore store;
  const LinearModel linear(Scope(store), {config, parse_attention("elu")});
  store.seal(1);
  const Tensor ids = random_ids(2, 9, 7, 9), refused = random_ids(2, 8, 7, 10);
  const auto require_same = [&](const auto& model, auto& state, auto& fresh, std::int64_t begin) {
    const Tensor next = columns(ids, begin, begin + 2);
    REQUIRE(state.length() == begin);
    REQUIRE(same_bits(model.next_logits(next, state), model.next_logits(next, fresh)));
  };
  Tape tape;
  for (const std::int64_t read : {0, 2, 7}) {
    INFO(read << " tokens read before");
    KvCache cache = gpt.model.make_cache(2), fresh = gpt.model.make_cache(2);
    const std::unique_ptr<State> state = linear.start(2), fresh_state = linear.start(2);
    if (read > 0) {
      for (KvCache* const each : {&cache, &fresh}) gpt.model.next_logits(columns(ids, 0, read), *each);
      for (State* const each : {state.get(), fresh_state.get()}) linear.next_logits(columns(ids, 0, read), *each);
    }
    {
      const Recording on(tape);
      REQUIRE_THROWS_WITH(gpt.model.next_logits(refused, cache), ContainsSubstring("end the Recording"));
      REQUIRE_THROWS_WITH(linear.next_logits(refused, *state), ContainsSubstring("end the Recording"));
    }
    tape.clear();
    if (read > 1) {
      REQUIRE_THROWS_WITH(gpt.model.next_logits(refused, cache), ContainsSubstring("at most 9 tokens"));
    }
    require_same(gpt.model, cache, fresh, read);
    require_same(linear, *state, *fresh_state, read);
  }
}

TEST_CASE("impossible extras are refused with messages that contain the values") {
  const auto build = [](std::int64_t width) {
    TransformerConfig config = kSmall;
    config.conv_width = width;
    SmallGpt gpt(config);
  };
  REQUIRE_THROWS_WITH(build(1), ContainsSubstring("conv_width: must be between 2 and 64 tokens; got 1"));
  REQUIRE_THROWS_WITH(build(65), ContainsSubstring("got 65"));
}
