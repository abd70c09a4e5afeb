// Decoding step by step has the bits of the parallel pass, also for a batch of padded sources, however the tokens are
// split into calls.
#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "tests/catch.h"
#include "tests/nn/small_seq2seq.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Feeds target ids in pieces, whose sizes repeat the given list, and compares the logits after each with those of the
// parallel pass. Returns the number of comparisons.
int compare(const Seq2SeqConfig& config, DType dtype, std::int64_t batch, std::int64_t source_length,
            const std::vector<std::int64_t>& pieces) {
  SmallSeq2Seq small(config, dtype);
  small.randomize(21);
  const std::int64_t tokens = config.block_size, v = config.vocab_size;
  const Batch pairs = random_pairs(config, batch, source_length, tokens, 22);
  const Tensor expected = small.model.logits(pairs.source, pairs.source_mask, pairs.ids);
  const std::unique_ptr<State> state = small.wrapped.start(batch, pairs.source, pairs.source_mask);
  REQUIRE(state->capacity() == tokens);
  int compared = 0;
  for (std::size_t i = 0; state->length() < tokens; ++i) {
    const std::int64_t begin = state->length(), end = std::min(tokens, begin + pieces[i % pieces.size()]);
    const Tensor logits = small.wrapped.next_logits(columns(pairs.ids, begin, end), *state);
    REQUIRE(state->length() == end);
    REQUIRE(logits.shape() == Shape{batch, v});
    for (std::int64_t b = 0; b < batch; ++b) {
      INFO("pair " << b << ", tokens " << begin << " to " << end);
      REQUIRE(same_bits(logits, b * v, expected, (b * tokens + end - 1) * v, v));
      ++compared;
    }
  }
  return compared;
}

}  // namespace

TEST_CASE("seq2seq: logits step by step are those of the parallel pass, bit for bit") {
  std::vector<Seq2SeqConfig> configs = seq2seq_variants();
  // 70 tokens on both sides are more than one block of keys, and a head size of 20 is not a multiple of a vector.
  configs.push_back({{.n_layer = 1,
                      .n_head = 2,
                      .n_embd = 40,
                      .block_size = 70,
                      .vocab_size = 33,
                      .activation = Activation::relu,
                      .norm_order = NormOrder::post,
                      .positions = Positions::sinusoidal},
                     30});
  const ThreadsScope one(1);
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (const Seq2SeqConfig& config : configs) {
      for (const DType dtype : {DType::float32, DType::float64}) {
        const std::int64_t batch = 4, source = config.block_size;
        INFO(target << ", " << to_string(dtype) << ", C " << config.n_embd);
        REQUIRE(compare(config, dtype, batch, source, {1}) == batch * config.block_size);
        REQUIRE(compare(config, dtype, 1, 1, {config.block_size}) == 1);
        REQUIRE(compare(config, dtype, batch, source, {5, 1, 1, 7, 2}) > 0);
      }
    }
  }
  kernels::force_target("");
  const ThreadsScope three(3);
  REQUIRE(compare(configs[3], DType::float32, 4, 70, {40, 3, 1}) > 0);
}

TEST_CASE("seq2seq: a source in a batch with longer ones gives the bits that it gives alone") {
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      SmallSeq2Seq small(config, dtype);
      small.randomize(23);
      const std::int64_t batch = 4, source = 8, tokens = 5, row = tokens * config.vocab_size;
      const Batch pairs = random_pairs(config, batch, source, tokens, 24);
      const Tensor together = small.model.logits(pairs.source, pairs.source_mask, pairs.ids);
      for (std::int64_t b = 0; b < batch; ++b) {
        const std::int32_t at[] = {static_cast<std::int32_t>(b)};
        const Tensor alone =
            small.model.logits(columns(rows_of(pairs.source, at), 0, source - b), {}, rows_of(pairs.ids, at));
        REQUIRE(same_bits(together, b * row, alone, 0, row));
      }
      const Tensor visible = full({1, source}, DType::int32, 1);
      const std::int32_t first[] = {0};
      REQUIRE(same_bits(small.model.logits(rows_of(pairs.source, first), visible, rows_of(pairs.ids, first)), 0,
                        together, 0, row));
    }
  }
}

TEST_CASE("seq2seq: reordered rows continue as their former rows do, also when the batch grows or shrinks") {
  SmallSeq2Seq small(kSmallSeq2Seq);
  small.randomize(25);
  const Batch pairs = random_pairs(kSmallSeq2Seq, 3, 6, 5, 26);
  const std::int64_t v = kSmallSeq2Seq.vocab_size;
  const Tensor expected = small.model.logits(pairs.source, pairs.source_mask, pairs.ids);
  for (const std::vector<std::int32_t>& rows : {std::vector<std::int32_t>{2, 0, 1}, {1, 1, 2, 0, 2}, {2}, {0, 0, 0}}) {
    const std::unique_ptr<State> state = small.wrapped.start(3, pairs.source, pairs.source_mask);
    small.wrapped.next_logits(columns(pairs.ids, 0, 3), *state);
    state->reorder(rows);
    REQUIRE(state->batch() == static_cast<std::int64_t>(rows.size()));
    REQUIRE(state->length() == 3);
    const Tensor logits = small.wrapped.next_logits(rows_of(columns(pairs.ids, 3, 4), rows), *state);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(same_bits(logits, static_cast<std::int64_t>(i) * v, expected, (rows[i] * 5 + 3) * v, v));
    }
    state->clear();
    REQUIRE(state->length() == 0);
    const Tensor again = small.wrapped.next_logits(rows_of(columns(pairs.ids, 0, 2), rows), *state);
    REQUIRE(same_bits(again, 0, expected, (rows[0] * 5 + 1) * v, v));
  }
  const std::unique_ptr<State> state = small.wrapped.start(3, pairs.source, pairs.source_mask);
  REQUIRE_THROWS_WITH(state->reorder(std::vector<std::int32_t>{0, 3}), ContainsSubstring("[0, 3)"));
  REQUIRE_THROWS_WITH(state->reorder(std::vector<std::int32_t>{}), ContainsSubstring("at least one row"));
  REQUIRE(state->batch() == 3);
}

TEST_CASE("seq2seq: a state names what it holds") {
  SmallSeq2Seq small(kSmallSeq2Seq);
  const Batch pairs = random_pairs(kSmallSeq2Seq, 2, 4, 3, 27);
  const auto names = [](State& state) {
    std::vector<std::string> list;
    for (const auto& [name, tensor] : state.tensors()) list.push_back(name);
    return list;
  };
  REQUIRE(names(*small.wrapped.start(2, pairs.source, pairs.source_mask)) ==
          std::vector<std::string>{"kv.0", "kv.1", "cross.0", "cross.1", "source_mask"});
  REQUIRE(names(*small.wrapped.start(2, pairs.source)) ==
          std::vector<std::string>{"kv.0", "kv.1", "cross.0", "cross.1"});
  // Under these names is what it reads: with the tensors of another one, it continues as that does.
  small.randomize(29);
  const Batch others = random_pairs(kSmallSeq2Seq, 2, 4, 3, 30);
  const std::unique_ptr<State> a = small.wrapped.start(2, pairs.source, pairs.source_mask),
                               b = small.wrapped.start(2, others.source, others.source_mask);
  small.wrapped.next_logits(columns(pairs.ids, 0, 2), *a);
  small.wrapped.next_logits(columns(others.ids, 0, 2), *b);
  const auto from = a->tensors(), to = b->tensors();
  const std::vector<CrossKeys>& read = dynamic_cast<const Seq2SeqState&>(*b).source();
  for (std::size_t i = 0; i < read.size(); ++i) REQUIRE(to[2 + i].second == &read[i].kv);
  for (std::size_t i = 0; i < from.size(); ++i) *to[i].second = from[i].second->clone();
  const Tensor last = columns(pairs.ids, 2, 3);
  REQUIRE(same_bits(small.wrapped.next_logits(last, *a), small.wrapped.next_logits(last, *b)));
}

TEST_CASE("seq2seq: a state refuses tokens that it cannot hold, and is unchanged by that") {
  SmallSeq2Seq small(kSmallSeq2Seq);
  const Batch pairs = random_pairs(kSmallSeq2Seq, 2, 4, 9, 28);
  const std::unique_ptr<State> state = small.wrapped.start(2, pairs.source, pairs.source_mask);
  const auto next = [&](const Tensor& ids) { return small.wrapped.next_logits(ids, *state); };
  next(columns(pairs.ids, 0, 7));
  REQUIRE_THROWS_WITH(next(columns(pairs.ids, 0, 3)), ContainsSubstring("block_size = 9"));
  REQUIRE_THROWS_WITH(next(zeros({3, 1}, DType::int32)), ContainsSubstring("[2, t]"));
  REQUIRE_THROWS_AS(next(zeros({2, 0}, DType::int32)), Error);
  REQUIRE_THROWS_AS(next(full({2, 1}, DType::int32, 99)), Error);
  {
    Tape tape;
    const Recording on(tape);
    REQUIRE_THROWS_WITH(next(zeros({2, 1}, DType::int32)), ContainsSubstring("Recording"));
  }
  REQUIRE(state->length() == 7);
  KvCache other(1, 2, 4, 12, DType::float32);
  REQUIRE_THROWS_WITH(small.wrapped.next_logits(zeros({2, 1}, DType::int32), other), ContainsSubstring("start()"));
}
