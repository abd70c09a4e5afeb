// Properties that a falling loss does not prove: no token sees the future, heads see all of the past, the sequences of
// a batch do not mix, and every weight learns.
#include <cmath>
#include <map>

#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::vector<TransformerConfig> kVariants = gpt_variants();

double train_step(SmallGpt& gpt, Optimizer& optimizer, Tape& tape, const Tensor& ids, const Tensor& targets,
                  double lr) {
  const Tensor loss = [&] {
    const Recording on(tape);
    return gpt.model.loss(ids, targets);
  }();
  tape.backward(loss);
  optimizer.step(lr);
  return loss.item();
}

}  // namespace

TEST_CASE("changing a token changes its own and all later logits, and no bit of earlier ones") {
  for (const TransformerConfig& config : kVariants) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      SmallGpt gpt(config, dtype);
      gpt.randomize(3);
      const std::int64_t batch = 2, tokens = config.block_size, v = config.vocab_size;
      const Tensor ids = random_ids(batch, tokens, v, 5);
      const Tensor before = gpt.model.logits(ids);
      for (std::int64_t t = 0; t < tokens; ++t) {
        Tensor changed = copy_of<std::int32_t>(ids);
        std::int32_t& id = changed.data<std::int32_t>()[tokens + t];  // of the second sequence
        id = static_cast<std::int32_t>((id + 1) % v);
        const Tensor after = gpt.model.logits(changed);
        INFO(describe(config) << ", token " << t);
        REQUIRE(same_bits(after, 0, before, 0, (tokens + t) * v));  // the first sequence, and the past of the second
        for (std::int64_t later = t; later < tokens; ++later) {
          INFO("position " << later);
          REQUIRE_FALSE(same_bits(after, (tokens + later) * v, before, (tokens + later) * v, v));
        }
      }
    }
  }
}

TEST_CASE("every head attends to every earlier position, and to later ones only if attention is not causal") {
  constexpr std::int64_t kTokens = 8, kWidth = 12, kHeads = 3, kSize = kWidth / kHeads;
  for (const bool causal : {true, false}) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      ParameterStore store(DType::float64);
      const MultiHeadAttention attn(Scope(store), {{.n_head = kHeads, .n_embd = kWidth}, causal});
      const Parameter& input = store.add("x", {1, kTokens, kWidth}, init::normal(1));
      store.seal(2);
      // Only the columns of this head reach the output.
      double* const proj = store.values().data<double>() + attn.c_proj.weight.offset();
      for (std::int64_t i = 0; i < kWidth * kWidth; ++i) {
        if (i % kWidth / kSize != head) proj[i] = 0;
      }
      const Tensor before = attn(input);
      for (std::int64_t s = 0; s < kTokens; ++s) {
        Tensor changed = copy_of<double>(input);
        for (std::int64_t c = 0; c < kWidth; ++c) changed.data<double>()[s * kWidth + c] += 1;
        const Tensor after = attn(changed);
        for (std::int64_t t = 0; t < kTokens; ++t) {
          INFO("head " << head << ", from " << s << " to " << t << (causal ? ", causal" : ", full"));
          REQUIRE(same_bits(after, t * kWidth, before, t * kWidth, kWidth) == (causal && s > t));
        }
      }
    }
  }
}

TEST_CASE("permuting the batch permutes the output") {
  for (const TransformerConfig& config : kVariants) {
    SmallGpt gpt(config);
    gpt.randomize(4);
    const std::int64_t batch = 5, tokens = config.block_size, row = tokens * config.vocab_size;
    const Tensor ids = random_ids(batch, tokens, config.vocab_size, 6), before = gpt.model.logits(ids);
    Tensor permuted = empty(ids.shape(), DType::int32);
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      const std::int64_t from = (i / tokens * 3 + 1) % batch;  // a permutation of 5
      permuted.data<std::int32_t>()[i] = ids.data<std::int32_t>()[from * tokens + i % tokens];
    }
    const Tensor after = gpt.model.logits(permuted);
    for (std::int64_t b = 0; b < batch; ++b) REQUIRE(same_bits(after, b * row, before, (b * 3 + 1) % batch * row, row));
    REQUIRE_FALSE(same_bits(after, before));
  }
}

TEST_CASE("positions that are added to tokens matter: the same token has different logits at different ones") {
  for (const TransformerConfig& config : kVariants) {
    if (config.positions == Positions::rotary || config.positions == Positions::none) continue;
    SmallGpt gpt(config);
    Tensor ids = zeros({1, 4}, DType::int32);
    const Tensor logits = gpt.model.logits(ids);
    for (std::int64_t t = 1; t < 4; ++t) {
      REQUIRE_FALSE(same_bits(logits, 0, logits, t * config.vocab_size, config.vocab_size));
    }
  }
}

TEST_CASE("the order of earlier tokens matters") {
  for (const TransformerConfig& config : kVariants) {
    SmallGpt gpt(config, DType::float64);
    gpt.randomize(14);
    const Tensor one = gpt.model.logits(tensor(std::vector<std::int32_t>{1, 2, 3, 4}, {1, 4}));
    const Tensor other = gpt.model.logits(tensor(std::vector<std::int32_t>{2, 1, 3, 4}, {1, 4}));
    double gap = 0;
    for (std::int64_t i = 3 * config.vocab_size; i < one.numel(); ++i) {
      gap = std::max(gap, std::abs(one.at(i) - other.at(i)));
    }
    INFO(describe(config));
    REQUIRE(gap > 1e-6);
  }
}

TEST_CASE("contexts longer than block_size are refused where positions are learned, and computed elsewhere") {
  for (const TransformerConfig& config : kVariants) {
    SmallGpt gpt(config, DType::float64);
    gpt.randomize(15);
    INFO(describe(config));
    const std::int64_t tokens = 4 * config.block_size, v = config.vocab_size;
    const Tensor ids = random_ids(2, tokens, v, 16);
    if (config.positions == Positions::learned) {
      REQUIRE_THROWS_WITH(gpt.model.logits(ids),
                          ContainsSubstring("learned positions end at block_size = 9 tokens; got 36"));
      continue;
    }
    // A model whose training context is as long computes the same.
    TransformerConfig longer = config;
    longer.block_size = tokens;
    SmallGpt other(longer, DType::float64);
    other.randomize(15);
    REQUIRE(same_bits(gpt.model.logits(ids), other.model.logits(ids)));
    REQUIRE(std::isfinite(gpt.model.loss(ids, ids).item()));
  }
}

TEST_CASE("the loss at the start is ln V within 2 percent") {
  for (const std::int64_t vocab : {65, 1000}) {
    for (const bool tied : {true, false}) {
      SmallGpt gpt(
          {.n_layer = 4, .n_head = 4, .n_embd = 64, .block_size = 32, .vocab_size = vocab, .tie_weights = tied});
      const double loss = gpt.model.loss(random_ids(4, 32, vocab, 1), random_ids(4, 32, vocab, 2)).item();
      REQUIRE(loss == Approx(std::log(static_cast<double>(vocab))).epsilon(0.02));
    }
  }
}

TEST_CASE("at learning rate 0 no weight changes, embeddings included, and above 0 every weight does") {
  for (const TransformerConfig& config : kVariants) {
    for (const bool adaptive : {true, false}) {
      SmallGpt gpt(config);
      gpt.randomize(8);
      AdamW adamw(gpt.store, {.weight_decay = 0.1});
      Sgd sgd(gpt.store, {.momentum = 0.9, .weight_decay = 0.1});
      Optimizer& optimizer = adaptive ? static_cast<Optimizer&>(adamw) : sgd;
      Tape tape;
      const Tensor ids = random_ids(6, config.block_size, config.vocab_size, 9);
      const Tensor targets = random_ids(6, config.block_size, config.vocab_size, 10);
      const Tensor before = copy_of<float>(gpt.store.values());
      train_step(gpt, optimizer, tape, ids, targets, 0);
      REQUIRE(same_bits(gpt.store.values(), before));

      train_step(gpt, optimizer, tape, ids, targets, 0.1);
      for (const auto& parameter : gpt.store.parameters()) {
        INFO(describe(config) << ": " << parameter->name());
        if (parameter->group() == ParamGroup::rows) continue;  // only rows of the batch change: see ngram_test.cpp
        const bool has_key_bias = parameter->name().ends_with("c_attn.bias");  // a key's bias has no gradient
        std::int64_t unchanged = 0, size = parameter->shape().numel();
        for (std::int64_t i = 0; i < size; ++i) {
          if (has_key_bias && i / config.n_embd == 1) continue;
          unchanged += parameter->value().at(i) == before.at(parameter->offset() + i);
        }
        REQUIRE(unchanged <= size / 10);  // an update may be too small to change a weight
      }
    }
  }
}

TEST_CASE("a model can be overfitted to one batch") {
  std::vector<TransformerConfig> configs = kVariants;
  for (const Activation activation :
       {Activation::gelu_tanh, Activation::relu, Activation::relu_squared, Activation::silu}) {
    TransformerConfig config = kSmall;
    config.activation = activation;
    config.bias = activation == Activation::relu;
    configs.push_back(config);
  }
  for (TransformerConfig& config : configs) {
    config.n_embd = 32;
    SmallGpt gpt(config);
    AdamW optimizer(gpt.store, {.beta2 = 0.99, .weight_decay = 0});
    Tape tape;
    const Tensor ids = random_ids(4, config.block_size, config.vocab_size, 11);
    // The target of a token is a function of all tokens up to it, so that it can be learnt but not guessed.
    Tensor targets = empty(ids.shape(), DType::int32);
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      sum = (i % config.block_size == 0 ? 0 : sum) + ids.data<std::int32_t>()[i];
      targets.data<std::int32_t>()[i] = static_cast<std::int32_t>(sum % config.vocab_size);
    }
    double loss = 10;
    int step = 0;
    // A sum is easier for a model to which absolute positions are added.
    const bool added = config.positions == Positions::learned || config.positions == Positions::sinusoidal;
    const double enough = added ? 0.01 : 0.05;
    while (loss >= enough && step < 600) {
      loss = train_step(gpt, optimizer, tape, ids, targets, 0.01 / (1 + step / 100));
      ++step;
    }
    INFO("steps " << step << ": " << describe(config));
    REQUIRE(loss < enough);
  }
}

TEST_CASE("dropout acts in a recording alone: on embeddings, attention weights and both residual branches") {
  TransformerConfig config = kSmall;
  config.dropout = 0.3;
  SmallGpt gpt(config);
  gpt.randomize(12);
  const Tensor ids = random_ids(2, config.block_size, config.vocab_size, 13);
  SmallGpt plain(kSmall);
  plain.randomize(12);
  REQUIRE(same_bits(gpt.model.logits(ids), plain.model.logits(ids)));

  Tape tape;
  const auto recorded = [&](const RandomContext& random) {
    const Recording on(tape, random);
    return gpt.model.loss(ids, ids);
  };
  std::map<std::string, int> nodes;
  tape.observe([&](const Tape::Observed& op) { nodes[op.name] += op.backward ? 1 : 0; });
  const Tensor loss = recorded({.seed = 1});
  tape.backward(loss);
  REQUIRE(nodes["dropout"] == 1 + 2 * config.n_layer);
  REQUIRE(recorded({.seed = 1}).item() == loss.item());
  REQUIRE(recorded({.seed = 2}).item() != loss.item());
  REQUIRE(recorded({.seed = 1, .step = 1}).item() != loss.item());
  tape.clear();

  ParameterStore store;
  const MultiHeadAttention attn(Scope(store), {{.n_head = 2, .n_embd = 12, .dropout = 0.5}});
  const Parameter& x = store.add("x", {1, 6, 12}, init::normal(1));
  store.seal();
  const Tensor without = attn(x);
  const Recording on(tape);
  REQUIRE_FALSE(same_bits(attn(x), without));
}
