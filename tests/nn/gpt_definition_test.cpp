// A whole Gpt in float64 against the formulas of its parts in extended precision (tests/ops/definitions.h): its loss,
// and by complex steps the gradient of every parameter.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/nn/small_gpt.h"
#include "tests/ops/definitions.h"

using namespace maki;
using namespace maki::tests;
using definitions::Exact;

namespace {

// The numbers of every parameter, by name; an absent one is empty.
using Weights = std::map<std::string, Exact>;

// The model that a configuration describes, made of definitions. Names are those of its parameters.
class DefinedGpt {
 public:
  DefinedGpt(const TransformerConfig& config, const Weights& weights) : c_(config), weights_(weights) {}

  /// ids and targets [B, T]; `ngrams` as NgramEmbedding::rows() returns them.
  Exact loss(const Exact& ids, const Exact& targets, const Exact& ngrams) const {
    const std::int64_t tokens = ids.shape()[1];
    Exact x = embedding(at("wte.weight"), ids);
    if (c_.positions == Positions::learned) x = add(x, slice(at("wpe.weight"), 0, 0, tokens));
    if (c_.positions == Positions::sinusoidal) {
      const Tensor waves = sinusoidal_positions(tokens, c_.n_embd, c_.position_base, DType::float64);
      x = add(scale(x, std::sqrt(static_cast<double>(c_.n_embd))), Exact(waves));
    }
    if (ngrams) x = add(x, embedding_sum(at("ngram.weight"), ngrams));
    for (std::int64_t i = 0; i < c_.n_layer; ++i) {
      const std::string block = "h." + std::to_string(i) + ".";
      x = residual(x, block + "ln_1",
                   [&](const Exact& z) { return attention_of(convolved(z, block + "conv_1"), block + "attn."); });
      x = residual(x, block + "ln_2",
                   [&](const Exact& z) { return feed_forward_of(convolved(z, block + "conv_2"), block + "mlp."); });
    }
    if (c_.norm_order == NormOrder::pre) x = norm(x, "ln_f");
    return linear_cross_entropy(x, at(c_.tie_weights ? "wte.weight" : "lm_head.weight"), targets);
  }

 private:
  Exact at(const std::string& name) const {
    const auto found = weights_.find(name);
    return found == weights_.end() ? Exact() : found->second;
  }

  Exact norm(const Exact& x, const std::string& name) const {
    const Exact weight = at(name + ".weight");
    return c_.norm == NormKind::rms ? rms_norm(x, weight, c_.norm_epsilon)
                                    : layer_norm(x, weight, at(name + ".bias"), c_.norm_epsilon);
  }

  Exact layer(const Exact& x, const std::string& name) const {
    return linear(x, at(name + ".weight"), at(name + ".bias"));
  }

  template <class Branch>
  Exact residual(const Exact& x, const std::string& name, const Branch& branch) const {
    if (c_.norm_order == NormOrder::post) return norm(add(x, branch(x)), name);
    return add(x, branch(norm(x, name)));
  }

  Exact convolved(const Exact& x, const std::string& name) const {
    return c_.conv_width > 0 ? short_conv(x, at(name + ".weight")) : x;
  }

  Exact attention_of(const Exact& x, const std::string& name) const {
    const std::int64_t size = c_.n_embd / c_.n_head, heads = c_.n_head + c_.kv_heads();
    Exact qkv = layer(x, name + "c_attn");
    if (c_.qk_norm) qkv = rms_norm_heads(qkv, at(name + "qk_norm"), heads);
    if (c_.positions == Positions::rotary) {
      qkv = rotary(qkv, rotary_angles(x.shape()[1], size, c_.position_base, DType::float64), heads);
    }
    const Attention options{.n_head = c_.n_head, .n_kv_head = c_.n_kv_head, .causal = true};
    return layer(attention(qkv, options), name + "c_proj");
  }

  Exact feed_forward_of(const Exact& x, const std::string& name) const {
    const Exact hidden = layer(x, name + "c_fc");
    return layer(c_.activation == Activation::swiglu ? swiglu(hidden) : gelu(hidden), name + "c_proj");
  }

  const TransformerConfig& c_;
  const Weights& weights_;
};

Tensor recorded_loss(Tape& tape, const SmallGpt& gpt, const Tensor& ids, const Tensor& targets) {
  const Recording on(tape);
  return gpt.model.loss(ids, targets);
}

}  // namespace

TEST_CASE("the loss of a Gpt of every form, and the gradient of every parameter, agree with its definition") {
  for (TransformerConfig config : gpt_variants()) {
    INFO(describe(config));
    config.n_embd = 8;
    config.block_size = 4;
    if (!config.ngram_orders.empty()) config.ngram_rows = 20;
    SmallGpt gpt(config, DType::float64);
    gpt.randomize(71);
    const Tensor ids = random_ids(1, 4, config.vocab_size, 72), targets = random_ids(1, 4, config.vocab_size, 73);
    Tape tape;
    const Tensor loss = recorded_loss(tape, gpt, ids, targets);
    tape.backward(loss);

    Weights weights;
    for (const auto& parameter : gpt.store.parameters()) weights[parameter->name()] = Exact(parameter->value());
    const Exact ngrams = gpt.model.input.ngram ? Exact(gpt.model.input.ngram->rows(ids)) : Exact();
    const DefinedGpt defined(config, weights);
    const auto defined_loss = [&] { return defined.loss(Exact(ids), Exact(targets), ngrams)[0]; };
    REQUIRE(loss.at(0) == Approx(static_cast<double>(defined_loss().real())).epsilon(1e-12).margin(0));
    double largest = 0;
    for (const auto& parameter : gpt.store.parameters()) {
      const Tensor gradient = parameter->gradient();
      const Tensor by_steps = definitions::complex_steps(weights[parameter->name()], defined_loss);
      for (std::int64_t i = 0; i < gradient.numel(); ++i) {
        INFO(parameter->name() << " element " << i);
        REQUIRE(std::abs(gradient.at(i) - by_steps.at(i)) < 1e-12);
        largest = std::max(largest, std::abs(by_steps.at(i)));
      }
    }
    REQUIRE(largest > 0.01);
  }
}

TEST_CASE("the loss of a Gpt of every form has the same bits whether or not it is recorded") {
  for (const TransformerConfig& config : gpt_variants()) {
    INFO(describe(config));
    for (const DType dtype : {DType::float32, DType::float64}) {
      SmallGpt gpt(config, dtype);
      gpt.randomize(74);
      const Tensor ids = random_ids(2, 9, config.vocab_size, 75), targets = random_ids(2, 9, config.vocab_size, 76);
      Tape tape;
      const Tensor recorded = recorded_loss(tape, gpt, ids, targets);
      const AsRecorded same_rounding;
      REQUIRE(maki::tests::same_bits(recorded, gpt.model.loss(ids, targets)));
    }
  }
}
