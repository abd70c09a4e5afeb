// Cached generation has the bits of the full forward pass, however the tokens are split into calls.
#include "nn/generate/kv_cache.h"

#include <cmath>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "nn/models/linear.h"
#include "nn/models/seq2seq.h"
#include "nn/models/transformer_xl.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Feeds ids in pieces, whose sizes repeat the given list, and compares the logits after each piece with those of the
// full forward pass. Returns the number of comparisons.
int compare(const TransformerConfig& config, DType dtype, std::int64_t batch, const std::vector<std::int64_t>& pieces) {
  SmallGpt gpt(config, dtype);
  gpt.randomize(21);
  const std::int64_t tokens = config.block_size, v = config.vocab_size;
  const Tensor ids = random_ids(batch, tokens, v, 22), expected = gpt.model.logits(ids);
  KvCache cache = gpt.model.make_cache(batch);
  int compared = 0;
  for (std::size_t i = 0; cache.length() < tokens; ++i) {
    const std::int64_t begin = cache.length(), end = std::min(tokens, begin + pieces[i % pieces.size()]);
    const Tensor logits = gpt.model.next_logits(columns(ids, begin, end), cache);
    REQUIRE(cache.length() == end);
    REQUIRE(logits.shape() == Shape{batch, v});
    for (std::int64_t b = 0; b < batch; ++b) {
      INFO("sequence " << b << ", tokens " << begin << " to " << end);
      REQUIRE(same_bits(logits, b * v, expected, (b * tokens + end - 1) * v, v));
      ++compared;
    }
  }
  return compared;
}

}  // namespace

TEST_CASE("logits with a cache are those of the full forward, bit for bit") {
  // 150 tokens are more than two blocks of keys. Head sizes of 24 and 20 are not multiples of a vector.
  std::vector<TransformerConfig> configs = {
      kSmall,
      {.n_layer = 2, .n_head = 2, .n_embd = 48, .block_size = 150, .vocab_size = 65},
      {.n_layer = 1,
       .n_head = 1,
       .n_embd = 20,
       .block_size = 70,
       .vocab_size = 33,
       .bias = false,
       .tie_weights = false},
      {.n_layer = 2,
       .n_head = 4,
       .n_embd = 32,
       .block_size = 40,
       .vocab_size = 17,
       .norm_order = NormOrder::post,
       .positions = Positions::sinusoidal,
       .position_base = 50},
      {.n_layer = 2,
       .n_head = 2,
       .n_embd = 44,  // heads of 11 pairs of columns
       .block_size = 90,
       .vocab_size = 17,
       .bias = false,
       .activation = Activation::swiglu,
       .norm = NormKind::rms,
       .positions = Positions::rotary,
       .position_base = 50},
  };
  configs.push_back({.n_layer = 2, .n_head = 6, .n_embd = 60, .block_size = 150, .vocab_size = 17, .n_kv_head = 2});
  for (const TransformerConfig& config : gpt_variants()) configs.push_back(config);
  const int before = threads();
  set_threads(1);
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (const TransformerConfig& config : configs) {
      for (const DType dtype : {DType::float32, DType::float64}) {
        for (const std::int64_t batch : {1, 3}) {
          INFO(target << ", " << to_string(dtype) << ", C " << config.n_embd << ", batch " << batch << ": "
                      << describe(config));
          REQUIRE(compare(config, dtype, batch, {1}) == batch * config.block_size);
          REQUIRE(compare(config, dtype, batch, {config.block_size}) == batch);
          REQUIRE(compare(config, dtype, batch, {5, 1, 1, 7, 2}) > 0);
        }
      }
    }
  }
  kernels::force_target("");
  set_threads(3);
  REQUIRE(compare(configs[1], DType::float32, 3, {100, 3, 1}) > 0);
  set_threads(before);
}

TEST_CASE("a cache longer than block_size serves any positions but learned ones") {
  for (const TransformerConfig& config : gpt_variants()) {
    SmallGpt gpt(config);
    gpt.randomize(31);
    const std::int64_t tokens = 3 * config.block_size, v = config.vocab_size;
    const Tensor ids = random_ids(1, tokens, v, 32);
    KvCache cache = gpt.model.make_cache(1, tokens);
    REQUIRE(cache.capacity() == tokens);
    gpt.model.next_logits(columns(ids, 0, config.block_size), cache);
    const Tensor next = columns(ids, config.block_size, config.block_size + 1);
    INFO(describe(config));
    if (config.positions == Positions::learned) {
      REQUIRE_THROWS_WITH(gpt.model.next_logits(next, cache),
                          ContainsSubstring("learned positions end at block_size = 9"));
      REQUIRE(cache.length() == config.block_size);
      continue;
    }
    const Tensor expected = gpt.model.logits(ids);
    for (std::int64_t t = config.block_size; t < tokens; ++t) {
      REQUIRE(same_bits(gpt.model.next_logits(columns(ids, t, t + 1), cache), 0, expected, t * v, v));
    }
    REQUIRE_THROWS_WITH(gpt.model.next_logits(next, cache), ContainsSubstring("at most 27 tokens"));
    REQUIRE(cache.length() == tokens);
  }
}

TEST_CASE("hidden states with a cache are those of the full forward at every position") {
  SmallGpt gpt(kSmall);
  gpt.randomize(23);
  const Tensor ids = random_ids(2, 9, 7, 24), expected = gpt.model.hidden(ids);
  KvCache cache = gpt.model.make_cache(2);
  const Tensor first = gpt.model.hidden(columns(ids, 0, 4), &cache),
               rest = gpt.model.hidden(columns(ids, 4, 9), &cache);
  for (std::int64_t b = 0; b < 2; ++b) {
    REQUIRE(same_bits(first, b * 4 * 12, expected, b * 9 * 12, 4 * 12));
    REQUIRE(same_bits(rest, b * 5 * 12, expected, (b * 9 + 4) * 12, 5 * 12));
  }
}

TEST_CASE("what a cache held before it was cleared has no effect") {
  for (const TransformerConfig& config : gpt_variants()) {
    INFO(describe(config));
    SmallGpt gpt(config);
    gpt.randomize(25);
    KvCache fresh = gpt.model.make_cache(1), cache = gpt.model.make_cache(1);
    const Tensor ids = random_ids(1, 4, 7, 26), expected = gpt.model.next_logits(columns(ids, 0, 1), fresh);
    gpt.model.next_logits(random_ids(1, 9, 7, 27), cache);
    cache.clear();
    REQUIRE(cache.length() == 0);
    REQUIRE(same_bits(gpt.model.next_logits(columns(ids, 0, 1), cache), expected));
    const Tensor rest = columns(ids, 1, 4);
    REQUIRE(same_bits(gpt.model.next_logits(rest, cache), gpt.model.next_logits(rest, fresh)));
  }
}

TEST_CASE("one layer of a cache rejects more tokens than it has room for") {
  KvLayer layer(1, 4, 6, DType::float32);
  layer.attend(zeros({1, 3, 18}, DType::float32), {.n_head = 2, .causal = true});
  REQUIRE_THROWS_WITH(layer.attend(zeros({1, 2, 18}, DType::float32), {.n_head = 2, .causal = true}),
                      ContainsSubstring("at most 4 tokens"));
  REQUIRE(layer.length() == 3);
  layer.attend(zeros({1, 1, 18}, DType::float32), {.n_head = 2, .causal = true});
  REQUIRE(layer.length() == 4);
}

TEST_CASE("a cache rejects sizes that are impossible") {
  REQUIRE_THROWS_WITH(KvCache(0, 1, 4, 6, DType::float32), ContainsSubstring("at least 1; got 0, 1, 4"));
  REQUIRE_THROWS_WITH(KvCache(2, 0, 4, 6, DType::float32), ContainsSubstring("at least 1; got 2, 0, 4"));
  REQUIRE_THROWS_WITH(KvCache(2, 1, 0, 6, DType::float32), ContainsSubstring("at least 1; got 2, 1, 0"));
  KvLayer layer(2, 4, 6, DType::float32);
  const auto attend = [&](const Shape& qkv, std::int64_t n_head, std::int64_t n_kv_head) {
    layer.attend(zeros(qkv, DType::float32), {.n_head = n_head, .n_kv_head = n_kv_head, .causal = true});
  };
  for (const auto& [n_head, n_kv_head] : {std::pair{0, 0}, {0, 2}, {2, -1}}) {
    REQUIRE_THROWS_WITH(attend({2, 1, 18}, n_head, n_kv_head),
                        ContainsSubstring(fmt::format("must be at least 1 and 0; got {} and {}", n_head, n_kv_head)));
  }
  for (const Shape& qkv : {Shape{1, 1, 18}, Shape{2, 1, 12}, Shape{2, 18}})
    REQUIRE_THROWS_WITH(attend(qkv, 2, 0), ContainsSubstring("must be [2, t, 18]; got"));
  REQUIRE_THROWS_WITH(attend({2, 1, 18}, 4, 2), ContainsSubstring("must be [2, t, 24]; got [2, 1, 18]"));
  REQUIRE(layer.length() == 0);
}

TEST_CASE("a cache rejects tokens that it cannot hold, and is unchanged by that") {
  SmallGpt gpt(kSmall);
  KvCache cache = gpt.model.make_cache(2);
  gpt.model.next_logits(random_ids(2, 7, 7, 28), cache);
  REQUIRE_THROWS_WITH(gpt.model.next_logits(random_ids(2, 3, 7, 29), cache), ContainsSubstring("block_size = 9"));
  REQUIRE_THROWS_WITH(gpt.model.next_logits(random_ids(3, 1, 7, 29), cache), ContainsSubstring("[2, t]"));
  REQUIRE_THROWS_AS(gpt.model.next_logits(zeros({2, 0}, DType::int32), cache), Error);
  REQUIRE_THROWS_AS(gpt.model.next_logits(full({2, 1}, DType::int32, 99), cache), Error);
  {
    Tape tape;
    const Recording on(tape);
    REQUIRE_THROWS_WITH(gpt.model.next_logits(random_ids(2, 1, 7, 29), cache), ContainsSubstring("Recording"));
  }
  REQUIRE(cache.length() == 7);
  gpt.model.next_logits(random_ids(2, 2, 7, 29), cache);
  REQUIRE(cache.length() == 9);
}

TEMPLATE_TEST_CASE("the state of a model of other sizes is refused, and reads nothing", "",
                   (std::pair<GptModel, TransformerConfig>), (std::pair<LinearModel, LinearConfig>),
                   (std::pair<TransformerXlModel, TransformerXlConfig>), (std::pair<Seq2SeqModel, Seq2SeqConfig>)) {
  using Config = typename TestType::second_type;
  const auto made = [](std::int64_t layers, std::int64_t width, ParameterStore& store) {
    Config config;
    static_cast<TransformerConfig&>(config) = kSmall;
    config.n_layer = layers;
    config.n_embd = width;
    if constexpr (std::is_same_v<Config, TransformerXlConfig>) config.memory = 4;
    if constexpr (std::is_same_v<Config, Seq2SeqConfig>) config.source_vocab_size = kSmall.vocab_size;
    auto model = std::make_unique<typename TestType::first_type>(Scope(store), config);
    store.seal(1);
    return model;
  };
  ParameterStore own;
  const auto model = made(2, 12, own);
  const Tensor ids = random_ids(1, 2, kSmall.vocab_size, 1);
  const auto state = model->start(1, std::is_same_v<Config, Seq2SeqConfig> ? ids : Tensor());
  const Tensor expected = model->next_logits(ids, *state);
  state->clear();
  for (const auto& [layers, width] : std::initializer_list<std::pair<int, int>>{{1, 12}, {3, 12}, {2, 8}, {2, 16}}) {
    INFO(layers << " layers of width " << width);
    ParameterStore store;
    const auto other = made(layers, width, store);
    REQUIRE_THROWS_AS(other->next_logits(ids, *state), Error);
    REQUIRE(state->length() == 0);
  }
  REQUIRE(same_bits(model->next_logits(ids, *state), expected));
}
