// Properties that a falling loss does not prove: no target token sees the future, every target token sees the whole
// source except padding, every weight has an exact gradient and learns.
#include <cmath>
#include <map>

#include "autograd/gradcheck.h"
#include "optim/adam.h"
#include "optim/lr_schedule.h"
#include "tests/catch.h"
#include "tests/nn/small_seq2seq.h"

using namespace maki;
using namespace maki::tests;

namespace {

// x with element i raised by one, modulo `below`.
Tensor with_changed(const Tensor& x, std::int64_t i, std::int64_t below) {
  Tensor changed = copy_of<std::int32_t>(x);
  std::int32_t& id = changed.data<std::int32_t>()[i];
  id = static_cast<std::int32_t>((id + 1) % below);
  return changed;
}

}  // namespace

TEST_CASE("seq2seq: changing a target token changes its own and all later logits, and no bit of earlier ones") {
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    SmallSeq2Seq small(config);
    small.randomize(3);
    const std::int64_t tokens = 6, v = config.vocab_size;
    const Batch pairs = random_pairs(config, 2, 5, tokens, 4);
    const Tensor before = small.model.logits(pairs.source, pairs.source_mask, pairs.ids);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const Tensor after = small.model.logits(pairs.source, pairs.source_mask, with_changed(pairs.ids, tokens + t, v));
      REQUIRE(same_bits(after, 0, before, 0, (tokens + t) * v));
      for (std::int64_t later = t; later < tokens; ++later) {
        REQUIRE_FALSE(same_bits(after, (tokens + later) * v, before, (tokens + later) * v, v));
      }
    }
  }
}

TEST_CASE("seq2seq: every target token sees every source token of its own pair, and nothing of padding") {
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    SmallSeq2Seq small(config);
    small.randomize(5);
    const std::int64_t source = 5, tokens = 4, v = config.vocab_size;
    const Batch pairs = random_pairs(config, 3, source, tokens, 6);
    const Tensor before = small.model.logits(pairs.source, pairs.source_mask, pairs.ids);
    for (std::int64_t i = 0; i < 3 * source; ++i) {
      const Tensor after =
          small.model.logits(with_changed(pairs.source, i, config.source_vocab_size), pairs.source_mask, pairs.ids);
      const bool visible = pairs.source_mask.at(i) != 0;
      for (std::int64_t row = 0; row < 3 * tokens; ++row) {
        INFO("source token " << i << ", target row " << row);
        REQUIRE(same_bits(after, row * v, before, row * v, v) == !(visible && row / tokens == i / source));
      }
    }
  }
}

TEST_CASE("seq2seq: the order of source tokens matters") {
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    SmallSeq2Seq small(config);
    const Tensor ids = zeros({1, 2}, DType::int32), one = full({1, 2}, DType::int32, 1);
    const Tensor a = small.model.logits(tensor<std::int32_t>({1, 2}, {1, 2}), one, ids);
    REQUIRE_FALSE(same_bits(a, small.model.logits(tensor<std::int32_t>({2, 1}, {1, 2}), one, ids)));
  }
}

TEST_CASE("seq2seq: the gradient of every parameter") {
  int variant = 0;
  for (Seq2SeqConfig config : seq2seq_variants()) {
    config.n_embd = 8;
    if (config.activation == Activation::relu) config.activation = Activation::silu;  // has no kink
    config.dropout = variant++ == 1 ? 0.2 : 0;
    SmallSeq2Seq small(config, DType::float64);
    small.randomize(7);
    const Batch pairs = random_pairs(config, 3, 5, 4, 8);
    const auto loss = [&] { return small.model.loss(pairs, {.label_smoothing = 0.1}); };
    const GradcheckOptions options{.step = 2.5e-4, .relative_floor = 1e-6, .random = {.seed = 3, .step = 2}};
    const std::vector<GradcheckResult> results = gradcheck(small.store, loss, options);
    REQUIRE(results.size() == small.store.parameters().size());
    for (const GradcheckResult& result : results) {
      INFO("variant " << variant << ", " << result.name << ": error " << result.error << ", worst " << result.worst
                      << " " << result.worst_analytic << " against " << result.worst_numeric);
      REQUIRE(result.passed(1e-8));
    }
  }
}

TEST_CASE("seq2seq: dropout acts in a recording alone: on both embeddings, attention weights and every branch") {
  Seq2SeqConfig config = kSmallSeq2Seq;
  config.dropout = 0.3;
  SmallSeq2Seq small(config), plain(kSmallSeq2Seq);
  const Batch pairs = random_pairs(config, 2, 5, 4, 9);
  REQUIRE(small.model.loss(pairs).item() == plain.model.loss(pairs).item());
  Tape tape;
  std::map<std::string, int> nodes;
  tape.observe([&](const Tape::Observed& op) { nodes[op.name] += op.backward ? 1 : 0; });
  const Tensor loss = [&] {
    const Recording on(tape, {.seed = 1});
    return small.model.loss(pairs);
  }();
  tape.backward(loss);
  REQUIRE(nodes["dropout"] == 2 + (2 + 3) * config.n_layer);
  REQUIRE(loss.item() != plain.model.loss(pairs).item());

  // Attention weights of cross-attention too.
  ParameterStore store;
  const CrossAttention cross(Scope(store), {{.n_head = 2, .n_embd = 12, .dropout = 0.5}});
  const Parameter& x = store.add("x", {1, 6, 12}, init::normal(1));
  store.seal();
  const Tensor without = cross(x, {cross.keys_values(x)});
  const Recording on(tape);
  REQUIRE_FALSE(same_bits(cross(x, {cross.keys_values(x)}), without));
}

TEST_CASE("seq2seq: learns to reverse a few sequences with warm-up, in every form") {
  for (Seq2SeqConfig config : seq2seq_variants()) {
    config.n_embd = 32;
    SmallSeq2Seq small(config);
    const std::int64_t batch = 6, tokens = 6;
    Batch pairs{.ids = zeros({batch, tokens}, DType::int32),
                .targets = zeros({batch, tokens}, DType::int32),
                .source = random_ids(batch, tokens, 6, 10)};
    for (std::int64_t b = 0; b < batch; ++b) {  // ids: 6 begins a sequence, then the source from its end
      std::int32_t* const ids = pairs.ids.data<std::int32_t>() + b * tokens;
      std::int32_t* const targets = pairs.targets.data<std::int32_t>() + b * tokens;
      for (std::int64_t t = 0; t < tokens; ++t) {
        targets[t] = pairs.source.data<std::int32_t>()[b * tokens + tokens - 1 - t];
        ids[t] = t == 0 ? 6 : targets[t - 1];
      }
    }
    Adam optimizer(small.store, {.beta2 = 0.98, .eps = 1e-9});
    const LrSchedule lr{.decay = lr_decay_named("inverse_sqrt"), .learning_rate = 5e-3, .warmup_steps = 40};
    Tape tape;
    double loss = 10;
    int step = 0;
    for (; loss >= 0.01 && step < 400; ++step) {
      const Tensor now = [&] {
        const Recording on(tape);
        return small.model.loss(pairs);
      }();
      tape.backward(now);
      optimizer.step(lr(step));
      loss = now.item();
    }
    INFO("steps " << step << ", norm " << static_cast<int>(config.norm_order) << ", loss " << loss);
    REQUIRE(loss < 0.01);
  }
}
