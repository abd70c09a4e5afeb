// Priors of windows of a text: contexts, pieces, held-out parts, threads; and what a task makes of them.
#include "train/run/counted_prior.h"

#include <cmath>

#include "autograd/core/parallel.h"
#include "tests/catch.h"
#include "tests/threads.h"
#include "train/loop/language_model_task.h"
#include "train/loop/random_dataset.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int32_t kVocab = 5;

// 300 tokens in pieces of 97 tokens.
Tokens some_tokens() {
  Tokens tokens(kVocab);
  for (std::int32_t i = 0, state = 1; i < 300; ++i) {
    if (i % 97 == 0) tokens.begin_piece();
    state = (state * 75 + 74) % 65537;
    tokens.append(std::vector<std::int32_t>{(state / 7 + i) % (i % 11 == 0 ? 2 : kVocab)});
  }
  return tokens;
}

NgramTrie counts_of(const Tokens& tokens) {
  NgramModel model(kVocab, 4);
  model.count(tokens);
  return NgramTrie(model);
}

std::vector<TokenRange> whole(const Tokens& tokens) { return {{0, static_cast<std::int64_t>(tokens.size())}}; }

// The tokens of the piece up to this position.
std::vector<std::int32_t> piece_until(const Tokens& tokens, std::int64_t position) {
  const TokenSpan span = tokens;
  std::int64_t begin = 0;
  for (const std::int64_t join : span.joins()) begin = join <= position ? join : begin;
  return span.ids(static_cast<std::size_t>(begin), static_cast<std::size_t>(position + 1 - begin));
}

}  // namespace

TEST_CASE("the prior of a window is that of the tokens of the piece, also before the window", "[counted_prior]") {
  const Tokens tokens = some_tokens();
  const NgramTrie counts = counts_of(tokens);
  const HeldOutCounts held_out(counts, tokens, whole(tokens));
  const std::vector<std::int64_t> starts = {0, 5, 90, 96, 97, 150, 280};
  const std::int64_t length = 70, n = static_cast<std::int64_t>(tokens.size());
  for (const bool held : {false, true}) {
    const Tensor prior = prior_of_windows(counts, tokens, starts, length, held ? &held_out : nullptr);
    REQUIRE(prior.shape() == Shape{std::ssize(starts), length, kVocab});
    for (std::int64_t i = 0; i < std::ssize(starts) * length; ++i) {
      const std::int64_t position = (starts[static_cast<std::size_t>(i / length)] + i % length) % n;
      INFO("position " << position);
      NgramContext context;
      for (const std::int32_t id : piece_until(tokens, position)) context = counts.next(context, id);
      std::vector<float> expected(static_cast<std::size_t>(kVocab));
      counts.log_probabilities(context, expected, held ? &held_out.part_of((position + 1) % n) : nullptr);
      for (std::int64_t v = 0; v < kVocab; ++v)
        REQUIRE(prior.at(i * kVocab + v) == static_cast<double>(expected[static_cast<std::size_t>(v)]));
    }
  }
}

TEST_CASE("with documents that are respected, no context continues beyond the end of one", "[counted_prior]") {
  constexpr std::int32_t kEnd = 0;
  const Tokens tokens = some_tokens();
  NgramModel model(kVocab, 4, {}, kEnd);
  model.count(tokens);
  const NgramTrie counts(model);
  const std::vector<std::int64_t> starts = {0, 5, 90, 150, 280};
  const std::int64_t length = 70, n = static_cast<std::int64_t>(tokens.size());
  // N-grams beyond an end are not counted, so it need not know of them.
  const CountedPrior restored(counts.save(), counts.vocab_size());
  std::int64_t ends = 0;
  for (const NgramTrie* const trie : {&counts, &restored.counts()}) {
    const Tensor prior = prior_of_windows(*trie, tokens, starts, length);
    for (std::int64_t i = 0; i < std::ssize(starts) * length; ++i) {
      const std::int64_t position = (starts[static_cast<std::size_t>(i / length)] + i % length) % n;
      const std::vector<std::int32_t> text = piece_until(tokens, position);
      const auto end = std::ranges::find(text.rbegin(), text.rend(), kEnd);
      ends += end == text.rend() ? 0 : 1;
      NgramContext context;
      for (auto id = end == text.rend() ? text.begin() : end.base() - 1; id != text.end(); ++id)
        context = counts.next(context, *id);
      std::vector<float> expected(static_cast<std::size_t>(kVocab)), generating(expected);
      counts.log_probabilities(context, expected);
      restored.log_probabilities(std::span(text).first(text.size() - 1), std::span(text).last(1), generating);
      for (std::size_t v = 0; v < expected.size(); ++v) {
        REQUIRE(prior.at(i * kVocab + static_cast<std::int64_t>(v)) == static_cast<double>(expected[v]));
        REQUIRE(generating[v] == expected[v]);
      }
    }
  }
  REQUIRE(ends > 100);
}

TEST_CASE("priors have the same bits on any number of threads", "[counted_prior]") {
  const Tokens tokens = some_tokens();
  const std::vector<std::int64_t> starts = {0, 5, 90, 200};
  const auto compute = [&] {
    const NgramTrie counts = counts_of(tokens);
    const HeldOutCounts held_out(counts, tokens, whole(tokens));
    const Tensor prior = prior_of_windows(counts, tokens, starts, 90, &held_out);
    return std::vector<float>(prior.values<float>().begin(), prior.values<float>().end());
  };
  std::vector<std::vector<float>> results;
  for (const int count : {1, 2, 3}) {
    const ThreadsScope team(count);
    results.push_back(compute());
  }
  REQUIRE(results[0] == results[1]);
  REQUIRE(results[0] == results[2]);
}

TEST_CASE("training leaves out what it predicts, evaluation does not", "[counted_prior]") {
  Config config;
  config.n_layer = 1;
  config.n_head = 1;
  config.n_embd = 8;
  config.block_size = 16;
  config.batch_size = 3;
  config.ngram_prior = 4;
  Dataset data = random_dataset(kVocab, 0, 1);
  data.train = some_tokens();
  data.val = some_tokens();
  const LanguageModelTask task(config, data);
  const NgramTrie counts = counts_of(data.train);
  const HeldOutCounts held_out(counts, data.train, whole(data.train));
  const TrainBatches batches(data.train, 3, 16, 1, static_cast<std::uint64_t>(config.seed));
  Batch batch;
  for (const std::int64_t step : {0, 4}) {
    task.fill(step, 0, batch);
    const std::vector<std::int64_t> starts = {batches.start(step, 0, 0), batches.start(step, 0, 1),
                                              batches.start(step, 0, 2)};
    const Tensor expected = prior_of_windows(counts, data.train, starts, 16, &held_out);
    REQUIRE(std::ranges::equal(batch.prior.values<float>(), expected.values<float>()));
  }
  for (const Part part : {Part::train, Part::val}) {
    task.fill_eval(part, 1, batch);
    const Tensor expected = prior_of_windows(counts, data.val, std::vector<std::int64_t>{48, 64, 80}, 16,
                                             part == Part::train ? &held_out : nullptr);
    REQUIRE(std::ranges::equal(batch.prior.values<float>(), expected.values<float>()));
  }
  REQUIRE(task.data_state().ngram_counts == counts.save());
}
