// The parameters of a Seq2Seq: names, counts and initial values; its estimates; and what it refuses.
#include <cmath>
#include <set>

#include "autograd/core/storage.h"
#include "optim/adam.h"
#include "tests/catch.h"
#include "tests/nn/small_seq2seq.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE(
    "seq2seq: parameters have the names of figure 1, and tables that are only looked up do not count as arithmetic") {
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    SmallSeq2Seq small(config);
    std::set<std::string> names;
    for (const auto& parameter : small.store.parameters()) {
      names.insert(parameter->name());
      const bool table = parameter->name().ends_with("pe.weight") || parameter->name().ends_with("ngram.weight");
      const bool head = config.tie_weights && &*parameter == &small.model.wte.weight;
      REQUIRE(parameter->multiplied() == (head || !(table || parameter->name().ends_with("wte.weight"))));
    }
    REQUIRE(names.contains("encoder.h.1.attn.c_attn.weight"));
    REQUIRE(names.contains("decoder.h.0.cross.c_q.weight"));
    REQUIRE(names.contains("decoder.h.1.cross.c_kv.weight"));
    REQUIRE(names.contains("decoder.h.1.ln_3.weight"));
    REQUIRE(names.contains("encoder.wte.weight") == !config.shared_embeddings);
    REQUIRE(names.contains("wte.weight") == config.shared_embeddings);
    REQUIRE(names.contains("lm_head.weight") == !config.tie_weights);
    REQUIRE(names.contains("encoder.wpe.weight") == (config.positions == Positions::learned));
    REQUIRE(names.contains("decoder.ln_f.weight") == (config.norm_order == NormOrder::pre));
  }
  ParameterStore store;
  const Seq2Seq base(Scope(store), {{.n_layer = 6,
                                     .n_head = 8,
                                     .n_embd = 512,
                                     .vocab_size = 37000,
                                     .norm_order = NormOrder::post,
                                     .positions = Positions::sinusoidal},
                                    37000,
                                    true});
  REQUIRE(store.multiplied_numel() == 37000 * 512 + 44138496);  // the paper counts 65 million
}

TEST_CASE("seq2seq: initial values are those of the published code") {
  const Seq2SeqConfig config{{.n_layer = 1, .n_head = 4, .n_embd = 64, .vocab_size = 140}, 150};
  SmallSeq2Seq small(config);
  const double c = 64;
  const auto deviation = [&](const char* name) {
    const Tensor& value = small.store.find(name);
    double squares = 0;
    for (std::int64_t i = 0; i < value.numel(); ++i) squares += value.at(i) * value.at(i);
    return std::sqrt(squares / static_cast<double>(value.numel()));
  };
  REQUIRE(deviation("encoder.wte.weight") == Approx(1 / std::sqrt(c)).epsilon(0.05));
  REQUIRE(deviation("decoder.wte.weight") == Approx(1 / std::sqrt(c)).epsilon(0.05));
  REQUIRE(deviation("encoder.h.0.attn.c_attn.weight") == Approx(1 / std::sqrt(2 * c)).epsilon(0.05));
  REQUIRE(deviation("decoder.h.0.cross.c_q.weight") == Approx(1 / std::sqrt(2 * c)).epsilon(0.05));
  REQUIRE(deviation("decoder.h.0.cross.c_kv.weight") == Approx(1 / std::sqrt(2 * c)).epsilon(0.05));
  REQUIRE(deviation("decoder.h.0.cross.c_proj.weight") == Approx(1 / std::sqrt(c)).epsilon(0.05));
  REQUIRE(deviation("decoder.h.0.mlp.c_fc.weight") == Approx(std::sqrt(2 / (5 * c))).epsilon(0.05));
  REQUIRE(deviation("decoder.h.0.mlp.c_proj.weight") == Approx(std::sqrt(2 / (5 * c))).epsilon(0.05));
}

TEST_CASE("seq2seq: the memory of a training step is estimated closely, and so is its arithmetic") {
  for (const auto& [norm, activation] : {std::pair(NormOrder::post, Activation::relu),
                                         {NormOrder::pre, Activation::relu},
                                         {NormOrder::pre, Activation::gelu}}) {
    const Seq2SeqConfig config{{.n_layer = 2,
                                .n_head = 4,
                                .n_embd = 64,
                                .block_size = 64,
                                .vocab_size = 100,
                                .activation = activation,
                                .norm_order = norm,
                                .positions = Positions::sinusoidal},
                               120};
    SmallSeq2Seq small(config);
    const Batch pairs = random_pairs(config, 8, 64, 64, 31);
    Adam optimizer(small.store);
    Tape tape;
    const auto step = [&] {
      const Tensor loss = [&] {
        const Recording on(tape);
        return small.wrapped.loss(pairs, {});
      }();
      tape.backward(loss);
      optimizer.step(1e-4);
    };
    step();
    storage_pool::trim();
    const std::int64_t before = storage_pool::statistics().bytes_in_use;
    storage_pool::reset_peak();
    step();
    const auto taken = static_cast<double>(storage_pool::statistics().peak_bytes - before);
    const auto estimate = static_cast<double>(small.wrapped.activation_bytes(8, 64));
    INFO("estimated " << estimate << ", taken " << taken);
    CHECK(estimate > 0.85 * taken);
    CHECK(estimate < 1.2 * taken);
    REQUIRE(flop_per_token(small.wrapped, small.store, 64) ==
            6.0 * static_cast<double>(small.store.numel() - 120 * 64) + 36.0 * 2 * 64 * 64);
  }
}

TEST_CASE("seq2seq: impossible configurations and inputs are refused with messages that contain the values") {
  ParameterStore store;
  const auto build = [&](Seq2SeqConfig config) { Seq2Seq(Scope(store), config); };
  REQUIRE_THROWS_WITH(build({{.n_head = 5, .n_embd = 12}}), ContainsSubstring("12 and 5"));
  REQUIRE_THROWS_AS(build({{.n_layer = 0}}), Error);
  REQUIRE_THROWS_AS(build({{.dropout = 1}}), Error);
  REQUIRE_THROWS_WITH(build({{.vocab_size = 6}, 5, true}), ContainsSubstring("5 source and 6 target"));
  REQUIRE_THROWS_WITH(build({{.n_layer = 1, .positions = Positions::sinusoidal, .position_base = 1}}),
                      ContainsSubstring("base"));

  Seq2SeqConfig config = kSmallSeq2Seq;
  config.positions = Positions::learned;
  const SmallSeq2Seq small(config), endless(kSmallSeq2Seq);
  const Tensor ids = random_ids(2, 10, 7, 1), few = random_ids(2, 3, 7, 1), one = full({2, 3}, DType::int32, 1);
  REQUIRE_THROWS_WITH(small.model.encode(ids), ContainsSubstring("block_size = 9") && ContainsSubstring("10"));
  REQUIRE_THROWS_WITH(small.model.logits(few, one, ids), ContainsSubstring("block_size = 9"));
  REQUIRE(endless.model.encode(ids).shape() == Shape{2, 10, 12});
  REQUIRE(same_bits(endless.model.encode(random_ids(1, 9, 7, 2)), endless.model.encode(random_ids(1, 9, 7, 2))));
  REQUIRE_THROWS_WITH(small.model.encode(few, full({2, 4}, DType::int32, 1)), ContainsSubstring("[2, 3]"));
  REQUIRE_THROWS_WITH(small.model.encode(few, full({2, 3}, DType::float32, 1)), ContainsSubstring("int32"));
  const Tensor hidden = tensor<std::int32_t>({1, 0, 0, 0, 0, 0}, {2, 3});
  REQUIRE_THROWS_WITH(small.model.encode(few, hidden), ContainsSubstring("hides all 3 of sequence 1"));
  REQUIRE_THROWS_WITH(small.model.loss({.ids = few, .targets = few}), ContainsSubstring("none"));
  REQUIRE_THROWS_WITH(small.wrapped.start(2), ContainsSubstring("needs a source of 2 sequences"));
  REQUIRE_THROWS_WITH(small.wrapped.start(3, few), ContainsSubstring("needs a source of 3 sequences"));
  REQUIRE_THROWS_AS(small.model.encode(full({2, 3}, DType::int32, 11)), Error);
}
