// The states of Transformer-XL: token after token gives what segments with a memory give, and the memory keeps the
// promises of Model::make_carried().
#include "nn/generate/generate.h"
#include "tests/catch.h"
#include "tests/nn/small_xl.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Feeds ids in pieces, whose sizes repeat the given list, and requires the bits of `expected` after each, up to `last`.
void require_stepwise(const SmallXl& xl, const Tensor& ids, const Tensor& expected, std::int64_t last,
                      const std::vector<std::int64_t>& pieces) {
  const std::int64_t batch = ids.shape()[0], tokens = ids.shape()[1], v = expected.shape()[2];
  const std::unique_ptr<State> state = xl.model.start(batch);
  for (std::size_t i = 0; state->length() < tokens; ++i) {
    const std::int64_t begin = state->length(), end = std::min(tokens, begin + pieces[i % pieces.size()]);
    const Tensor logits = xl.model.next_logits(columns(ids, begin, end), *state);
    REQUIRE(state->length() == end);
    if (end > last) continue;
    for (std::int64_t b = 0; b < batch; ++b) {
      INFO("sequence " << b << ", tokens " << begin << " to " << end);
      REQUIRE(same_bits(logits, b * v, expected, (b * expected.shape()[1] + end - 1) * v, v));
    }
  }
}

}  // namespace

TEST_CASE("transformer-xl: token after token has the bits of segments with a memory, however tokens are split") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    std::vector<TransformerXlConfig> configs = xl_variants();
    configs.push_back(with_memory(4));
    configs.push_back(with_memory(9));
    configs.push_back(with_memory(30));
    configs.push_back(with_memory(100, 70));  // more than a block of keys
    configs.push_back(with_memory(1, 1));
    for (const TransformerXlConfig& config : configs) {
      const SmallXl xl(config, dtype);
      const std::int64_t tokens = 4 * config.block_size + 30;
      const Tensor ids = random_ids(2, tokens, 7, 6), all = in_segments(xl, ids);
      for (const std::vector<std::int64_t>& pieces : {std::vector<std::int64_t>{1}, {20, 1}, {3, 7}, {tokens}}) {
        INFO("memory " << config.memory << ", segments of " << config.block_size);
        require_stepwise(xl, ids, all, tokens, pieces);
      }
    }
  }
}

TEST_CASE("transformer-xl: with little memory, token after token has the bits of one pass over what fits") {
  for (const auto& [memory, block] : {std::array<std::int64_t, 2>{0, 9}, {0, 8}, {3, 9}, {2, 80}}) {
    const SmallXl xl(with_memory(memory, block), DType::float64);
    const Tensor ids = random_ids(2, 3 * block, 7, 6), all = xl.model.logits(ids);
    for (const std::vector<std::int64_t>& pieces : {std::vector<std::int64_t>{1}, {4, 2}, {3 * block}}) {
      require_stepwise(xl, ids, all, memory + block, pieces);
    }
    // Then half of block_size is kept: the next token notices a change of the oldest token that is left.
    const std::int64_t full = memory + block;
    const Tensor next = columns(ids, 0, full + 1);
    Tensor edited = copy_of<std::int32_t>(next);
    std::int32_t& id = edited.data<std::int32_t>()[full - block / 2];
    id = static_cast<std::int32_t>((id + 1) % 7);
    const std::unique_ptr<State> a = xl.model.start(2), b = xl.model.start(2);
    REQUIRE_FALSE(same_bits(xl.model.next_logits(next, *a), 0, xl.model.next_logits(edited, *b), 0, 7));
  }
}

TEST_CASE("transformer-xl: a generation has no end, and its state does not grow") {
  for (const std::int64_t memory : {0, 11}) {
    const SmallXl xl(with_memory(memory));
    const std::unique_ptr<State> state = xl.model.start(1);
    std::int64_t size = 0, generated = 0;
    for (const auto& [name, tensor] : state->tensors()) size += tensor->numel();
    REQUIRE(size == 2 * (memory + 9) * 24);
    const std::vector<std::int32_t> prompt(50, 3);
    const GenerateOptions options{.max_tokens = 300, .sampling = {.seed = 4}, .slide_context = false};
    const Generated result = generate(xl.model, prompt, options, 0, [&](std::int32_t) { return ++generated > 0; });
    REQUIRE(result.tokens == 300);
    REQUIRE(result.reason == StopReason::max_tokens);
  }
}

TEST_CASE("transformer-xl: the memory has the last tokens, and is replaced, never written to") {
  const SmallXl xl(kSmallXl, DType::float64);
  const std::unique_ptr<SegmentMemory> memory = xl.memory(2);
  const auto tensors = memory->tensors();
  REQUIRE(tensors.size() == 2);
  REQUIRE(tensors[0].first == "memory.0");
  REQUIRE(tensors[1].second->shape() == Shape{2, 0, 12});
  REQUIRE(memory->capacity() == 11);
  const Tensor ids = random_ids(2, 40, 7, 9), embedded = xl.model.net.embed(ids);
  std::int64_t read = 0;
  for (const std::int64_t tokens : {4, 3, 9, 1, 20}) {
    const Tensor before = *tensors[1].second, copy = before.clone();
    const Tensor part = columns(ids, read, read + tokens);
    xl.model.loss({.ids = part, .targets = part}, {}, memory.get());
    read += tokens;
    REQUIRE(memory->length() == std::min<std::int64_t>(11, read));
    REQUIRE(same_bits(before, copy));
    // What enters the first layer are embeddings.
    REQUIRE(same_bits(*tensors[0].second, slice(embedded, 1, read - memory->length(), read)));
    REQUIRE(tensors[1].second->shape() == Shape{2, memory->length(), 12});
  }
  memory->clear();
  REQUIRE(memory->length() == 0);
  REQUIRE(memory->batch() == 2);
  REQUIRE(same_bits(xl.model.logits(ids, memory.get()), xl.model.logits(ids)));
}

TEST_CASE("transformer-xl: n-grams continue from the tokens in the memory, which must hold them") {
  TransformerXlConfig config = kSmallXl;
  config.ngram_orders = {3}, config.ngram_rows = 343;
  for (const DType dtype : {DType::float32, DType::float64}) {
    const SmallXl xl(config, dtype);
    const std::unique_ptr<SegmentMemory> memory = xl.memory(2);
    const Tensor ids = random_ids(2, 25, 7, 4);
    REQUIRE_FALSE(memory->recent());
    for (const auto& [begin, end] : {std::pair{0, 1}, {1, 9}, {9, 25}}) {
      xl.model.logits(columns(ids, begin, end), memory.get());
      REQUIRE(same_bits(memory->recent(), columns(ids, std::max(0, end - 2), end)));
    }
    REQUIRE(memory->tensors().back().first == "tokens");
    REQUIRE(memory->tensors().back().second->shape() == Shape{2, 11});
    memory->reorder(std::vector<std::int32_t>{1});
    REQUIRE(memory->recent().at(1) == ids.at(49));
    memory->clear();
    REQUIRE_FALSE(memory->recent());
  }
  config.memory = 1;
  REQUIRE_THROWS_WITH(SmallXl(config), ContainsSubstring("a memory must hold the 2 tokens before those of an n-gram"));
  config.memory = 0;
  REQUIRE_NOTHROW(SmallXl(config));
  config.memory = 11;
  config.vocab_size = (1 << 24) + 1;
  REQUIRE_THROWS_WITH(SmallXl(config), ContainsSubstring("need a vocabulary of at most 16777216 tokens"));
}

TEST_CASE("transformer-xl: what is refused changes neither memory nor cache") {
  const SmallXl xl(kSmallXl);
  const std::unique_ptr<SegmentMemory> memory = xl.memory(2);
  const Tensor ids = random_ids(2, 9, 7, 9), bad = full({2, 9}, DType::int32, 7);
  xl.model.logits(columns(ids, 0, 5), memory.get());
  REQUIRE_THROWS_AS(xl.model.loss({.ids = ids, .targets = bad}, {}, memory.get()), Error);
  REQUIRE_THROWS_AS(xl.model.loss({.ids = bad, .targets = ids}, {}, memory.get()), Error);
  REQUIRE_THROWS_AS(xl.model.loss({.ids = columns(ids, 0, 5), .targets = ids}, {}, memory.get()), Error);
  const Tensor three = random_ids(3, 9, 7, 9);
  REQUIRE_THROWS_AS(xl.model.loss({.ids = three, .targets = three}, {}, memory.get()), Error);
  REQUIRE(memory->length() == 5);
  const std::unique_ptr<State> state = xl.model.start(2);
  REQUIRE_THROWS_AS(xl.model.loss({.ids = ids, .targets = ids}, {}, state.get()), Error);
  REQUIRE_THROWS_AS(xl.model.next_logits(ids, *memory), Error);
  REQUIRE_THROWS_AS(xl.model.next_logits(three, *state), Error);
  Tensor late = random_ids(2, 40, 7, 9);
  late.data<std::int32_t>()[39] = 7;
  REQUIRE_THROWS_AS(xl.model.next_logits(late, *state), Error);
  REQUIRE(state->length() == 0);
  {
    Tape tape;
    const Recording on(tape);
    REQUIRE_THROWS_AS(xl.model.next_logits(ids, *state), Error);
  }
  REQUIRE_THROWS_AS(xl.model.start(2, ids), Error);
  REQUIRE_THROWS_AS(xl.model.start(0), Error);
  REQUIRE(SmallXl(with_memory(0)).model.make_carried(2) == nullptr);
  REQUIRE_THROWS_AS(SmallXl(with_memory(-1)), Error);
}

TEST_CASE("transformer-xl: reorder gives every row the state of the chosen row, and clear an empty one") {
  const SmallXl xl(kSmallXl);
  const Tensor ids = random_ids(3, 30, 7, 7), all = in_segments(xl, ids);
  const std::vector<std::int32_t> rows = {2, 0, 2, 1};
  Tensor last = empty({4, 1}, DType::int32);
  for (std::size_t b = 0; b < 4; ++b) last.data<std::int32_t>()[b] = ids.data<std::int32_t>()[rows[b] * 30 + 29];
  const std::unique_ptr<State> state = xl.model.start(3);
  xl.model.next_logits(columns(ids, 0, 29), *state);
  state->reorder(rows);
  REQUIRE(state->batch() == 4);
  const Tensor logits = xl.model.next_logits(last, *state);
  const std::unique_ptr<SegmentMemory> memory = xl.memory(3);
  for (const std::int64_t begin : {0, 9, 18}) xl.model.logits(columns(ids, begin, begin + 9), memory.get());
  xl.model.logits(columns(ids, 27, 29), memory.get());
  memory->reorder(rows);
  REQUIRE(memory->batch() == 4);
  REQUIRE(xl.model.logits(last, memory.get()).shape() == Shape{4, 1, 7});
  for (std::int64_t b = 0; b < 4; ++b) {
    REQUIRE(same_bits(logits, b * 7, all, (rows[static_cast<std::size_t>(b)] * 30 + 29) * 7, 7));
  }
  REQUIRE_THROWS_AS(state->reorder(std::vector<std::int32_t>{0, 4}), Error);
  REQUIRE_THROWS_AS(memory->reorder(std::vector<std::int32_t>{}), Error);
  state->clear();
  REQUIRE(state->length() == 0);
  state->reorder(std::vector<std::int32_t>{0, 1, 2});
  const Tensor again = xl.model.next_logits(ids, *state);
  for (std::int64_t b = 0; b < 3; ++b) REQUIRE(same_bits(again, b * 7, all, (b * 30 + 29) * 7, 7));
}
