// LoRA: adapted linear layers against the formula W x + scale · B A x, their gradients, and the weights into which they
// are merged.
#include "nn/low_rank.h"

#include <cmath>
#include <rapidcheck.h>
#include <set>

#include "autograd/gradcheck.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/nn/small_gpt.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

const LowRank kEverywhere{.rank = 3, .scale = 0.7, .wanted = [](const std::string&) { return true; }};

// A linear layer [out, in] with an adapter.
struct Adapted {
  Adapted(std::int64_t in, std::int64_t out, DType dtype, const LowRank& options = kEverywhere)
      : store(dtype), layer(Scope(store).with_adapters(options) / "layer", in, out) {
    store.seal(5);
  }
  ParameterStore store;
  Linear layer;
};

struct AdaptedGpt {
  explicit AdaptedGpt(const TransformerConfig& config, DType dtype = DType::float32)
      : store(dtype), model(Scope(store).with_adapters(kEverywhere), config) {
    store.seal(1);
  }
  ParameterStore store;
  Gpt model;
};

}  // namespace

TEST_CASE("a new adapter changes no bit of what its layer computes, with and without a recording") {
  REQUIRE(rc::check("any shape", [] {
    const auto in = *rc::gen::inRange<std::int64_t>(1, 40), out = *rc::gen::inRange<std::int64_t>(1, 40);
    const DType dtype = *rc::gen::element(DType::float32, DType::float64);
    const Adapted adapted(in, out, dtype);
    ParameterStore plain(dtype);
    const Linear layer(Scope(plain) / "layer", in, out);
    plain.seal(5);
    const Tensor x = random_tensor({2, 3, in}, 7, dtype);
    RC_ASSERT(same_bits(adapted.layer(x), layer(x)));
    Tape tape;
    const Recording on(tape);
    RC_ASSERT(same_bits(adapted.layer(x), layer(x)));
  }));
}

TEST_CASE("A is drawn from N(0, 1/in), B is 0, and both are matrices for Muon") {
  const Adapted adapted(400, 60, DType::float64);
  const LowRankAdapter& adapter = *adapted.layer.adapter;
  REQUIRE(adapter.a.name() == "layer.lora_a");
  REQUIRE(adapter.b.name() == "layer.lora_b");
  REQUIRE(adapter.a.shape() == Shape{3, 400});
  REQUIRE(adapter.b.shape() == Shape{60, 3});
  REQUIRE(adapter.a.matrices() == 1);
  REQUIRE(adapter.b.matrices() == 1);
  double squares = 0, sum = 0;
  for (std::int64_t i = 0; i < 1200; ++i) {
    squares += adapter.a.value().at(i) * adapter.a.value().at(i);
    sum += adapter.a.value().at(i);
  }
  REQUIRE(std::abs(squares / 1200 * 400 - 1) < 0.15);
  REQUIRE(std::abs(sum / 1200) < 0.005);
  for (std::int64_t i = 0; i < 180; ++i) REQUIRE(adapter.b.value().at(i) == 0);
}

TEST_CASE("an adapted layer computes W x + b + scale B A x") {
  Adapted adapted(5, 4, DType::float64);
  randomize(adapted.store, 3);
  const Tensor x = random_tensor({2, 5}, 9), y = adapted.layer(x);
  const Tensor &w = adapted.layer.weight, &a = adapted.layer.adapter->a, &b = adapted.layer.adapter->b;
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t o = 0; o < 4; ++o) {
      double sum = adapted.layer.bias->value().at(o);
      for (std::int64_t i = 0; i < 5; ++i) sum += w.at(o * 5 + i) * x.at(row * 5 + i);
      for (std::int64_t r = 0; r < 3; ++r) {
        for (std::int64_t i = 0; i < 5; ++i) sum += 0.7 * b.at(o * 3 + r) * a.at(r * 5 + i) * x.at(row * 5 + i);
      }
      REQUIRE(std::abs(y.at(row * 4 + o) - sum) < 1e-12);
    }
  }
}

TEST_CASE("the gradients of an adapted layer are those of differences, through every activation") {
  for (const Activation activation : kActivations) {
    INFO(to_string(activation));
    Adapted adapted(6, 8, DType::float64);
    randomize(adapted.store, 3);
    const Tensor x = random_tensor({3, 6}, 9);
    for (const GradcheckResult& r :
         gradcheck(adapted.store, [&] { return activate(x, adapted.layer, activation); }, {.halvings = 10})) {
      INFO(r.name << " " << r.worst);
      REQUIRE(r.passed(1e-7));
    }
  }
}

TEST_CASE("an adapter takes part in every activation of its layer") {
  for (const Activation activation : kActivations) {
    INFO(to_string(activation));
    Adapted adapted(6, 8, DType::float64);
    randomize(adapted.store, 3);
    ParameterStore plain(DType::float64);
    const Linear merged(Scope(plain) / "layer", 6, 8);
    plain.seal_uninitialized();
    merge_adapters(adapted.store, 0.7, plain);
    const Tensor x = random_tensor({3, 6}, 9);
    const Tensor expected = activate(x, merged, activation), got = activate(x, adapted.layer, activation);
    REQUIRE(largest_difference(expected, got) < 1e-12);
    REQUIRE(largest_difference(expected, activate(x, Adapted(6, 8, DType::float64).layer, activation)) > 0.01);
  }
}

TEST_CASE("the maps of the blocks are adapted, and embeddings, norms and the output layer are not") {
  for (const TransformerConfig& config : gpt_variants()) {
    INFO(describe(config));
    AdaptedGpt adapted(config);
    std::multiset<std::string> names;
    for (const auto& parameter : adapted.store.parameters()) {
      if (is_adapter(parameter->name())) names.insert(parameter->name());
    }
    std::multiset<std::string> expected;
    for (const char* const block : {"h.0.", "h.1."}) {
      for (const char* const layer : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) {
        for (const char* const part : {".lora_a", ".lora_b"}) expected.insert(std::string(block) + layer + part);
      }
    }
    REQUIRE(names == expected);
  }
}

TEST_CASE("only layers that the options want are adapted, and each is asked about once") {
  std::multiset<std::string> asked;
  const LowRank options{.rank = 1, .wanted = [&](const std::string& weight) {
                          asked.insert(weight);
                          return weight == "h.1.mlp.c_fc.weight";
                        }};
  ParameterStore store;
  const Gpt gpt(Scope(store).with_adapters(options), kSmall);
  REQUIRE(asked.size() == 8);
  REQUIRE(asked.count("h.0.attn.c_attn.weight") == 1);
  REQUIRE(gpt.h[1].mlp.c_fc.adapter.has_value());
  REQUIRE_FALSE(gpt.h[1].mlp.c_proj.adapter.has_value());
  REQUIRE_FALSE(gpt.h[0].mlp.c_fc.adapter.has_value());
}

TEST_CASE("logits with merged weights are those of the adapters, and those of a new adapter are the model's own") {
  for (const TransformerConfig& config : gpt_variants()) {
    INFO(describe(config));
    for (const DType dtype : {DType::float32, DType::float64}) {
      AdaptedGpt adapted(config, dtype);
      SmallGpt merged(config, dtype, 1);
      const Tensor ids = random_ids(2, 6, config.vocab_size, 4);
      const auto logits = [&](const Gpt& gpt) { return gpt.head(gpt.hidden(ids)); };
      REQUIRE(same_bits(logits(adapted.model), logits(merged.model)));
      const Tensor before = logits(merged.model);
      for (const auto& parameter : adapted.store.parameters()) {
        if (!is_adapter(parameter->name())) continue;
        dispatch(dtype, [&]<class T>() {
          T* const value = adapted.store.values().data<T>() + parameter->offset();
          const RandomStream stream(2, RandomPurpose::test, parameter->name());
          for (std::int64_t i = 0; i < parameter->shape().numel(); ++i) {
            value[i] = static_cast<T>(0.2 * stream.normal(static_cast<std::uint64_t>(i)));
          }
        });
      }
      adapted.store.mark_changed();
      merge_adapters(adapted.store, 0.7, merged.store);
      const Tensor expected = logits(adapted.model);
      REQUIRE(largest_difference(expected, logits(merged.model)) < (dtype == DType::float32 ? 1e-6 : 1e-14));
      REQUIRE(largest_difference(expected, before) > 1e-5);
    }
  }
}

TEST_CASE("merging needs a parameter for everything that is not an adapter") {
  Adapted adapted(3, 2, DType::float32);
  ParameterStore plain;
  plain.add("other", {2}, init::constant(0));
  plain.seal();
  REQUIRE(contains(error_message<Error>([&] { merge_adapters(adapted.store, 1, plain); }), "layer.weight"));
}

TEST_CASE("adapters of a layer at the root of a store are merged, and a rank of 0 is refused") {
  ParameterStore adapted, plain;
  const Linear layer(Scope(adapted).with_adapters(kEverywhere), 4, 5), merged(Scope(plain), 4, 5);
  adapted.seal(5);
  plain.seal(6);
  REQUIRE(is_adapter(layer.adapter->a.name()));
  merge_adapters(adapted, kEverywhere.scale, plain);
  const Tensor x = random_tensor({3, 4}, 7, DType::float32);
  REQUIRE(same_bits(merged(x), layer(x)));  // B is 0
  ParameterStore store;
  LowRank none = kEverywhere;
  none.rank = 0;
  REQUIRE_THROWS_WITH(Linear(Scope(store).with_adapters(none), 4, 4),
                      ContainsSubstring("the rank must be at least 1; got 0"));
}
