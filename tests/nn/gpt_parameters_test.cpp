// The parameters of a Gpt: names, groups, shapes, initial values and counts; and the configurations that it rejects.
#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::vector<std::string> expected_names(const TransformerConfig& c) {
  std::vector<std::string> names = {"wte.weight"};
  if (c.positions == Positions::learned) names.push_back("wpe.weight");
  if (!c.ngram_orders.empty()) names.push_back("ngram.weight");
  const auto add = [&](const std::string& layer) {
    names.push_back(layer + ".weight");
    const bool norm = layer.find("ln_") != std::string::npos;
    if (c.bias && !(norm && c.norm == NormKind::rms)) names.push_back(layer + ".bias");
  };
  for (std::int64_t i = 0; i < c.n_layer; ++i) {
    const std::string h = "h." + std::to_string(i) + ".";
    const auto add_vector = [&](bool wanted, const char* name) {
      if (wanted) names.push_back(h + name);
    };
    for (const char* const n : {"1", "2"}) {
      const bool first = *n == '1';
      add(h + "ln_" + n);
      add_vector(c.conv_width > 0, first ? "conv_1.weight" : "conv_2.weight");
      add(h + (first ? "attn.c_attn" : "mlp.c_fc"));
      add_vector(c.qk_norm && first, "attn.qk_norm");
      add(h + (first ? "attn.c_proj" : "mlp.c_proj"));
    }
  }
  if (c.norm_order == NormOrder::pre) add("ln_f");
  if (!c.tie_weights) names.push_back("lm_head.weight");
  return names;
}

// Mean and standard deviation of a parameter's values.
std::pair<double, double> moments_of(const Parameter& p) {
  double sum = 0, squares = 0;
  const auto n = static_cast<double>(p.shape().numel());
  for (std::int64_t i = 0; i < p.shape().numel(); ++i) sum += p.value().at(i);
  for (std::int64_t i = 0; i < p.shape().numel(); ++i) squares += std::pow(p.value().at(i) - sum / n, 2);
  return {sum / n, std::sqrt(squares / n)};
}

}  // namespace

TEST_CASE("every weight is in the store, in the order of the model, under GPT-2's name and in its group") {
  std::vector<TransformerConfig> configs = gpt_variants();
  for (const TransformerConfig& config : gpt_variants()) {
    configs.push_back(config);
    configs.back().bias = !config.bias;
    configs.push_back(config);
    configs.back().tie_weights = !config.tie_weights;
  }
  for (const TransformerConfig& config : configs) {
    INFO(describe(config));
    SmallGpt gpt(config);
    std::vector<std::string> names;
    std::int64_t count = 0;
    for (const auto& parameter : gpt.store.parameters()) {
      names.push_back(parameter->name());
      INFO(parameter->name());
      const bool matrix = parameter->shape().rank() == 2 && parameter->name().find("conv") == std::string::npos;
      const bool table = parameter->name() == "ngram.weight";
      REQUIRE(parameter->group() == (table ? ParamGroup::rows : matrix ? ParamGroup::decay : ParamGroup::no_decay));
      if (parameter->name() != "wpe.weight") count += parameter->shape().numel();
    }
    REQUIRE(names == expected_names(config));
    const std::int64_t looked_up = (config.tie_weights ? 0 : config.vocab_size * config.n_embd) +
                                   (gpt.model.input.ngram ? gpt.model.input.ngram->weight.shape().numel() : 0);
    REQUIRE(gpt.store.multiplied_numel() == count - looked_up);
  }
}

TEST_CASE("a gated feed-forward network has a hidden width of 8/3, rounded up to a multiple of 16") {
  REQUIRE(feed_forward_width(768, Activation::gelu) == 3072);
  REQUIRE(feed_forward_width(768, Activation::swiglu) == 2048);
  REQUIRE(feed_forward_width(384, Activation::swiglu) == 1024);
  REQUIRE(feed_forward_width(12, Activation::swiglu) == 32);
  REQUIRE(feed_forward_width(128, Activation::swiglu) == 352);  // 341.3
  const SmallGpt gpt({.n_layer = 1, .n_head = 1, .n_embd = 12, .activation = Activation::swiglu});
  REQUIRE(gpt.store.find("h.0.mlp.c_fc.weight").shape() == Shape{64, 12});
  REQUIRE(gpt.store.find("h.0.mlp.c_proj.weight").shape() == Shape{12, 32});
}

TEST_CASE("heads that share keys and values have fewer weights, gains and cached numbers") {
  TransformerConfig config = kSmall;  // two heads of six columns
  config.n_kv_head = 1;
  config.qk_norm = true;
  const SmallGpt gpt(config);
  const Parameter& packed = gpt.store.find("h.1.attn.c_attn.weight");
  REQUIRE(packed.shape() == Shape{12 + 6 + 6, 12});
  REQUIRE(packed.matrices() == 4);  // of six rows: two of q, k and v
  REQUIRE(gpt.store.find("h.1.attn.c_attn.bias").shape() == Shape{24});
  REQUIRE(gpt.store.find("h.1.attn.qk_norm").shape() == Shape{18});
  KvCache cache = gpt.model.make_cache(3);
  REQUIRE(cache.tensors().front().second->shape() == Shape{3, config.block_size, 2 * 6});
  // What is missing are 12 rows of each c_attn and 6 gains.
  TransformerConfig full = config;
  full.n_kv_head = 2;
  const SmallGpt all(full);
  REQUIRE(all.store.find("h.1.attn.c_attn.weight").matrices() == 3);
  const std::int64_t fewer = 2 * (12 * 12 + 12 + 6);
  REQUIRE(all.store.multiplied_numel() - gpt.store.multiplied_numel() == fewer);
  REQUIRE(all.model.activation_bytes(2, 9) - gpt.model.activation_bytes(2, 9) == 2 * 9 * 2 * 2 * 12 * 4);
  config.n_kv_head = 3;
  ParameterStore store;
  REQUIRE_THROWS_WITH(Gpt(Scope(store), config),
                      ContainsSubstring("n_kv_head must be 0 or divide n_head; got 3 and 2"));
}

TEST_CASE("weights have shape out by in, and GPT-2 small has as many parameters as nanoGPT counts") {
  ParameterStore store;
  const Gpt model(Scope(store), TransformerConfig{});
  REQUIRE(store.numel() == 124439808);
  REQUIRE(store.multiplied_numel() == 124439808 - 1024 * 768);  // without positions
  REQUIRE(store.find("wte.weight").shape() == Shape{50257, 768});
  REQUIRE(store.find("wpe.weight").shape() == Shape{1024, 768});
  REQUIRE(store.find("h.11.attn.c_attn.weight").shape() == Shape{3 * 768, 768});
  REQUIRE(store.find("h.3.mlp.c_fc.weight").shape() == Shape{4 * 768, 768});
  REQUIRE(store.find("h.3.mlp.c_proj.weight").shape() == Shape{768, 4 * 768});
  REQUIRE(attention_flop(model.config, 1024) == 12.0 * 12 * 12 * 64 * 1024);
}

TEST_CASE("initial values are GPT-2's") {
  const TransformerConfig config{
      .n_layer = 3, .n_head = 4, .n_embd = 64, .block_size = 128, .vocab_size = 150, .tie_weights = false};
  SmallGpt gpt(config);
  for (const auto& parameter : gpt.store.parameters()) {
    const std::string& name = parameter->name();
    const auto moments = moments_of(*parameter);
    INFO(name);
    if (parameter->shape().rank() == 2) {
      const double std = name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(6.0) : 0.02;
      REQUIRE(moments.second == Approx(std).epsilon(0.05));
      REQUIRE(std::abs(moments.first) < 0.05 * std);
    } else {
      REQUIRE(moments.first == (name.ends_with("weight") ? 1 : 0));
      REQUIRE(moments.second == 0);
    }
  }
  // Values are a function of seed and name, whatever other parameters the model has.
  SmallGpt again(config), other(config, DType::float32, 2),
      tied({.n_layer = 3, .n_head = 4, .n_embd = 64, .block_size = 128, .vocab_size = 150, .bias = false});
  REQUIRE(same_bits(gpt.store.values(), again.store.values()));
  REQUIRE_FALSE(same_bits(gpt.store.values(), other.store.values()));
  REQUIRE(same_bits(gpt.store.find("h.2.mlp.c_fc.weight"), tied.store.find("h.2.mlp.c_fc.weight")));
}

TEST_CASE("a tied head is the token embedding") {
  SmallGpt gpt(kSmall, DType::float64);
  gpt.randomize(1);
  const Tensor ids = random_ids(2, 5, kSmall.vocab_size, 2);
  REQUIRE(same_bits(gpt.model.logits(ids), linear(gpt.model.hidden(ids), gpt.store.find("wte.weight"))));
}

TEST_CASE("a Gpt rejects impossible configurations and inputs with messages that contain the values") {
  const auto build = [&](const TransformerConfig& rejected) {
    ParameterStore store;
    Gpt(Scope(store), rejected);
  };
  REQUIRE_THROWS_WITH(build({.n_layer = 2, .n_head = 5, .n_embd = 12}), ContainsSubstring("12 and 5"));
  REQUIRE_THROWS_AS(build({.n_layer = 0}), Error);
  REQUIRE_THROWS_AS(build({.n_layer = 1, .n_head = 0}), Error);
  REQUIRE_THROWS_AS(build({.vocab_size = 0}), Error);
  REQUIRE_THROWS_AS(build({.dropout = 1}), Error);
  TransformerConfig config = kSmall;
  config.position_base = 1;  // not used
  build(config);
  for (const Positions positions : {Positions::sinusoidal, Positions::rotary}) {
    config.positions = positions;
    REQUIRE_THROWS_WITH(build(config), ContainsSubstring("base") && ContainsSubstring("above 1; got 1"));
  }
  config.position_base = 10;
  config.n_head = 4;  // of three columns
  REQUIRE_THROWS_WITH(build(config), ContainsSubstring("even number of columns; got 3"));

  const SmallGpt gpt(kSmall);
  REQUIRE_THROWS_WITH(gpt.model.logits(random_ids(1, 10, 7, 1)),
                      ContainsSubstring("block_size = 9") && ContainsSubstring("10"));
  REQUIRE_THROWS_WITH(gpt.model.logits(zeros({3}, DType::int32)), ContainsSubstring("[3]"));
  REQUIRE_THROWS_AS(gpt.model.logits(zeros({1, 3}, DType::float32)), Error);
  REQUIRE_THROWS_AS(gpt.model.logits(full({1, 3}, DType::int32, 7)), Error);
  REQUIRE_THROWS_AS(gpt.model.logits(full({1, 3}, DType::int32, -1)), Error);
}
