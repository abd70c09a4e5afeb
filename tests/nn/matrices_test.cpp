// Which parameters of the models are matrices for an optimizer, and how many are stacked in each.
#include <map>
#include <string>

#include "nn/models/encoder.h"
#include "nn/models/gpt.h"
#include "nn/models/seq2seq.h"
#include "nn/models/transformer_xl.h"
#include "tests/catch.h"

using namespace maki;

namespace {

// By the last two parts of a name. Everything else of two axes is a table or an output layer.
const std::map<std::string, std::int64_t> kStacked = {{"c_attn.weight", 3}, {"c_proj.weight", 1}, {"c_fc.weight", 1},
                                                      {"c_q.weight", 1},    {"c_kv.weight", 2},   {"c_r.weight", 1}};

template <class M, class C>
void require_matrices(const C& config, std::int64_t gates = 1) {
  ParameterStore store;
  const M model(Scope(store), config);
  std::int64_t matrices = 0;
  for (const auto& parameter : store.parameters()) {
    const std::string& name = parameter->name();
    const std::size_t dot = name.find_last_of('.', name.find_last_of('.') - 1);
    const std::string end = dot == std::string::npos ? name : name.substr(dot + 1);
    const auto found = kStacked.find(end);
    const std::int64_t expected = found == kStacked.end() ? 0 : end == "c_fc.weight" ? gates : found->second;
    INFO(name);
    REQUIRE(parameter->matrices() == expected);
    matrices += expected;
  }
  REQUIRE(matrices >= 6);
}

}  // namespace

TEST_CASE("the weights of blocks are matrices, q‖k‖v three of them, and embeddings and output layers are none") {
  const TransformerConfig gpt{.n_layer = 1, .n_head = 2, .n_embd = 8, .block_size = 4, .vocab_size = 5};
  require_matrices<Gpt>(gpt);
  TransformerConfig gated = gpt;
  gated.activation = Activation::swiglu;
  gated.tie_weights = false;
  require_matrices<Gpt>(gated, 2);
  require_matrices<EncoderModel>(EncoderConfig{gpt});
  require_matrices<EncoderModel>(EncoderConfig{gpt, 3});
  require_matrices<Seq2SeqModel>(Seq2SeqConfig{gpt, 5});
  require_matrices<TransformerXl>(TransformerXlConfig{gpt, 4});
}

TEST_CASE("a linear layer is one matrix unless it says otherwise, and an embedding none") {
  ParameterStore store;
  const Scope scope(store);
  REQUIRE(Linear(scope / "a", 3, 4).weight.matrices() == 1);
  REQUIRE(Linear(scope / "b", 3, 4).bias->matrices() == 0);
  REQUIRE(Linear(scope / "c", 3, 4, true, std::nullopt, 2).weight.matrices() == 2);
  REQUIRE(Linear(scope / "d", 3, 5, true, std::nullopt, kOutputLayer).weight.matrices() == 0);
  REQUIRE(Embedding(scope / "e", 5, 3).weight.matrices() == 0);
  REQUIRE_THROWS_AS(Linear(scope / "f", 3, 5, true, std::nullopt, 2), Error);
}
