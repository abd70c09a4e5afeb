// Beam search against exhaustive search, greedy search and itself in other batches.
#include "nn/generate/beam.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/nn/small_seq2seq.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int32_t kBegin = 1, kEnd = 0;

using Results = std::vector<std::vector<Hypothesis>>;

Results search(const SmallSeq2Seq& small, const Tensor& source, const Tensor& mask, const BeamOptions& options) {
  const std::int64_t batch = source.shape()[0];
  const std::unique_ptr<State> state = small.wrapped.start(batch, source, mask);
  return beam_search(small.wrapped, *state, full({batch, 1}, DType::int32, kBegin), options);
}

// The log-probability of each next token after kBegin and ids, for one source.
std::vector<double> next_log_probabilities(const SmallSeq2Seq& small, const Tensor& source,
                                           std::vector<std::int32_t> ids) {
  ids.insert(ids.begin(), kBegin);
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const Tensor y = log_softmax(small.model.logits(source, {}, tensor(ids, {1, tokens})));
  const std::int64_t v = y.shape()[2];
  std::vector<double> row;
  for (std::int64_t i = 0; i < v; ++i) row.push_back(y.at((tokens - 1) * v + i));
  return row;
}

// Every sequence of at most max_tokens tokens, in the order that beam_search() promises.
void enumerate(const SmallSeq2Seq& small, const Tensor& source, const BeamOptions& options,
               const std::vector<std::int32_t>& ids, double log_probability, std::vector<Hypothesis>& all) {
  const std::vector<double> next = next_log_probabilities(small, source, ids);
  for (std::size_t i = 0; i < next.size(); ++i) {
    const double total = log_probability + next[i];
    const auto length = static_cast<std::int64_t>(ids.size()) + 1;
    const double score = total / std::pow((5.0 + static_cast<double>(length)) / 6.0, options.length_penalty);
    if (static_cast<std::int32_t>(i) == kEnd) {
      all.push_back({ids, total, score, true});
      continue;
    }
    std::vector<std::int32_t> longer = ids;
    longer.push_back(static_cast<std::int32_t>(i));
    if (length == options.max_tokens) {
      all.push_back({longer, total, score, false});
    } else {
      enumerate(small, source, options, longer, total, all);
    }
  }
}

// A model of four tokens (0 ends) whose next token depends on the last one alone: row i of the table has the
// probabilities after token i. Rows of its state are the tokens read.
class TableState final : public State {
 public:
  explicit TableState(std::int64_t batch) : rows(static_cast<std::size_t>(batch)) {}
  std::int64_t batch() const override { return static_cast<std::int64_t>(rows.size()); }
  std::int64_t length() const override { return static_cast<std::int64_t>(rows[0].size()); }
  std::int64_t capacity() const override { return 100; }
  void clear() override {}
  void reorder(std::span<const std::int32_t> from) override {
    const std::vector<std::vector<std::int32_t>> before = rows;
    rows.clear();
    for (const std::int32_t row : from) rows.push_back(before[static_cast<std::size_t>(row)]);
  }
  std::vector<std::pair<std::string, Tensor*>> tensors() override { return {}; }

  std::vector<std::vector<std::int32_t>> rows;
};

class TableModel final : public Generator {
 public:
  explicit TableModel(std::vector<std::vector<double>> probabilities) : table_(std::move(probabilities)) {}
  const char* kind() const override { return "table"; }
  Tensor loss(const Batch&, const CrossEntropy&, State*) const override { return {}; }
  double attention_flop(std::int64_t) const override { return 0; }
  std::int64_t activation_bytes(std::int64_t, std::int64_t) const override { return 0; }
  std::unique_ptr<State> start(std::int64_t batch, const Tensor&, const Tensor&) const override {
    return std::make_unique<TableState>(batch);
  }
  Tensor next_logits(const Tensor& ids, State& state) const override {
    auto& rows = dynamic_cast<TableState&>(state).rows;
    Tensor logits = empty({ids.shape()[0], 4}, DType::float64);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      rows[r].push_back(ids.data<std::int32_t>()[r]);
      for (std::size_t i = 0; i < 4; ++i) {
        logits.data<double>()[4 * r + i] = std::log(table_[static_cast<std::size_t>(rows[r].back())][i]);
      }
    }
    return logits;
  }

 private:
  std::vector<std::vector<double>> table_;
};

bool same(const Hypothesis& a, const Hypothesis& b) {
  return a.ids == b.ids && a.ended == b.ended && a.log_probability == b.log_probability && a.score == b.score;
}

}  // namespace

TEST_CASE("beam search: a beam that holds every hypothesis finds what exhaustive search finds, in the same order") {
  Seq2SeqConfig config = kSmallSeq2Seq;
  config.vocab_size = 4;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SmallSeq2Seq small(config, DType::float64);
    small.randomize(seed);
    const Tensor source = random_ids(1, 5, config.source_vocab_size, seed);
    for (const double alpha : {0.0, 0.6, 2.0}) {
      const BeamOptions options{.beam_size = 300, .n_best = 200, .length_penalty = alpha, .max_tokens = 4, .end = kEnd};
      std::vector<Hypothesis> all;
      enumerate(small, source, options, {}, 0, all);
      std::ranges::sort(all, [](const Hypothesis& a, const Hypothesis& b) {
        return a.ended != b.ended ? a.ended : a.score > b.score;
      });
      const std::vector<Hypothesis> found = search(small, source, {}, options)[0];
      REQUIRE(found.size() == std::min<std::size_t>(200, all.size()));
      REQUIRE(all.size() == 1 + 3 + 9 + 27 + 81);
      for (std::size_t i = 0; i < found.size(); ++i) {
        INFO("hypothesis " << i << ", alpha " << alpha);
        REQUIRE(found[i].ids == all[i].ids);
        REQUIRE(found[i].ended == all[i].ended);
        REQUIRE(found[i].log_probability == Approx(all[i].log_probability).epsilon(1e-12));
        REQUIRE(found[i].score == Approx(all[i].score).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("beam search: a beam of one takes the most likely token at each step") {
  int ended = 0, cut = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SmallSeq2Seq small(kSmallSeq2Seq);
    small.randomize(seed);
    const Tensor source = random_ids(1, 5, kSmallSeq2Seq.source_vocab_size, seed);
    std::vector<std::int32_t> greedy;
    bool end = false;
    while (!end && greedy.size() < 8) {
      const std::vector<double> next = next_log_probabilities(small, source, greedy);
      const auto id = static_cast<std::int32_t>(std::ranges::max_element(next) - next.begin());
      end = id == kEnd;
      if (!end) greedy.push_back(id);
    }
    const Hypothesis found = search(small, source, {}, {.beam_size = 1, .max_tokens = 8, .end = kEnd})[0].at(0);
    REQUIRE(found.ids == greedy);
    REQUIRE(found.ended == end);
    (end ? ended : cut) += 1;
  }
  REQUIRE(ended > 0);
  REQUIRE(cut > 0);
}

TEST_CASE("beam search: a wider beam finds a hypothesis at least as probable, and the result is sorted") {
  int better = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SmallSeq2Seq small(kSmallSeq2Seq);
    small.randomize(seed);
    const Tensor source = random_ids(1, 6, kSmallSeq2Seq.source_vocab_size, seed);
    BeamOptions options{.beam_size = 1, .length_penalty = 0, .max_tokens = 6, .end = kEnd};
    const Hypothesis greedy = search(small, source, {}, options)[0][0];
    options.beam_size = options.n_best = 50;
    const std::vector<Hypothesis> wide = search(small, source, {}, options)[0];
    if (greedy.ended) {
      REQUIRE(wide[0].log_probability >= greedy.log_probability);
      better += wide[0].log_probability > greedy.log_probability;
    }
    for (std::size_t i = 1; i < wide.size(); ++i) {
      REQUIRE((wide[i - 1].ended != wide[i].ended ? wide[i - 1].ended : wide[i - 1].score >= wide[i].score));
      REQUIRE(wide[i - 1].ids != wide[i].ids);
    }
  }
  REQUIRE(better > 0);
}

TEST_CASE("beam search: a source gets the same hypotheses in any batch and with any number of threads") {
  for (const Seq2SeqConfig& config : seq2seq_variants()) {
    SmallSeq2Seq small(config);
    small.randomize(31);
    const Batch pairs = random_pairs(config, 5, 7, 1, 32);
    const BeamOptions options{.beam_size = 3, .n_best = 3, .max_tokens = 8, .end = kEnd};
    const ThreadsScope one(1);
    const Results together = search(small, pairs.source, pairs.source_mask, options);
    {
      const ThreadsScope three(3);
      const Results again = search(small, pairs.source, pairs.source_mask, options);
      for (std::size_t b = 0; b < 5; ++b) REQUIRE(std::ranges::equal(together[b], again[b], same));
    }
    for (std::int32_t b = 0; b < 5; ++b) {
      const std::int32_t at[] = {b};
      std::vector<std::int32_t> ids;
      for (std::int64_t s = 0; s < 7 - b; ++s) ids.push_back(pairs.source.data<std::int32_t>()[b * 7 + s]);
      const Results alone = search(small, tensor(ids, {1, 7 - b}), {}, options);
      REQUIRE(std::ranges::equal(together[static_cast<std::size_t>(b)], alone[0], same));
      const Results padded = search(small, rows_of(pairs.source, at), rows_of(pairs.source_mask, at), options);
      REQUIRE(std::ranges::equal(padded[0], alone[0], same));
    }
  }
}

TEST_CASE("beam search: equal probabilities are ordered by the smaller id") {
  SmallSeq2Seq small(kSmallSeq2Seq);
  std::ranges::fill(small.store.values().values<float>(), 0.0F);  // every token is equally likely
  small.store.mark_changed();
  const Tensor source = zeros({1, 2}, DType::int32);
  const std::vector<Hypothesis> found =
      search(small, source, {}, {.beam_size = 3, .n_best = 3, .max_tokens = 2, .end = 6})[0];
  REQUIRE(found.size() == 3);
  REQUIRE(found[0].ids == std::vector<std::int32_t>{0, 0});
  REQUIRE(found[1].ids == std::vector<std::int32_t>{1, 0});
  REQUIRE(found[2].ids == std::vector<std::int32_t>{2, 0});
}

TEST_CASE("beam search: an end counts only among the best beam_size candidates of its step") {
  // After 1: 2 or 3. Of the second step, "2 end" is first, "2 1" second, "3 end" third: with a beam of two, the third
  // is dropped, although only one of those before it goes on.
  const TableModel model({{1, 0, 0, 0}, {0.02, 0, 0.58, 0.4}, {0.5, 0.45, 0.05, 0}, {0.4, 0.3, 0.3, 0}});
  TableState state(1);
  const std::vector<Hypothesis> found =
      beam_search(model, state, full({1, 1}, DType::int32, 1),
                  {.beam_size = 2, .n_best = 2, .length_penalty = 0, .max_tokens = 8, .end = 0})[0];
  REQUIRE(found.size() == 2);
  REQUIRE(found[0].ids == std::vector<std::int32_t>{2});
  REQUIRE(found[0].log_probability == Approx(std::log(0.58 * 0.5)));
  REQUIRE(found[1].ids != std::vector<std::int32_t>{3});
  REQUIRE(found[1].ended);
}

TEST_CASE("beam search: improbable ends do not end a search while a more probable hypothesis continues") {
  // "end" and "2 end" are second of their steps, as with smoothed labels every end is; "2 3 end" is eight times as
  // likely.
  const TableModel model({{1, 0, 0, 0}, {0.06, 0, 0.9, 0.04}, {0.1, 0, 0, 0.9}, {0.9, 0, 0.1, 0}});
  for (const double alpha : {0.0, 0.6}) {
    TableState state(1);
    const std::vector<Hypothesis> found =
        beam_search(model, state, full({1, 1}, DType::int32, 1),
                    {.beam_size = 2, .n_best = 2, .length_penalty = alpha, .max_tokens = 8, .end = 0})[0];
    REQUIRE(found.size() == 2);
    REQUIRE(found[0].ids == std::vector<std::int32_t>{2, 3});
    REQUIRE(found[0].log_probability == Approx(std::log(0.9 * 0.9 * 0.9)));
    if (alpha > 0) continue;
    REQUIRE(found[1].ids == std::vector<std::int32_t>{2});
    REQUIRE(state.length() == 3);  // no longer than needed: "2 3 2" is less likely than both
  }
}

TEST_CASE("beam search: a single logit that is not a number is noticed") {
  const TableModel model({{1, 0, 0, 0}, {0.5, 0.2, std::nan(""), 0.3}, {1, 0, 0, 0}, {1, 0, 0, 0}});
  TableState state(1);
  REQUIRE_THROWS_AS(beam_search(model, state, full({1, 1}, DType::int32, 1), {.max_tokens = 3}), BadLogitsError);
}

TEST_CASE("length penalty: equation 14 of Wu et al. 2016") {
  REQUIRE(length_penalty(1, 0.6) == 1);
  REQUIRE(length_penalty(7, 1) == 2);
  REQUIRE(length_penalty(19, 0.5) == 2);
  REQUIRE(length_penalty(100, 0) == 1);
}

TEST_CASE("beam search: options out of range and logits that are not numbers are refused") {
  SmallSeq2Seq small(kSmallSeq2Seq);
  const Tensor source = zeros({2, 3}, DType::int32);
  const auto run = [&](const BeamOptions& options) { search(small, source, {}, options); };
  REQUIRE_THROWS_WITH(run({.beam_size = 0, .max_tokens = 3}), ContainsSubstring("got 0 and 1"));
  REQUIRE_THROWS_WITH(run({.beam_size = 2, .n_best = 3, .max_tokens = 3}), ContainsSubstring("got 2 and 3"));
  REQUIRE_THROWS_WITH(run({.length_penalty = -1, .max_tokens = 3}), ContainsSubstring("-1"));
  REQUIRE_THROWS_WITH(run({.max_tokens = 10}), ContainsSubstring("[1, 9]") && ContainsSubstring("got 10"));
  REQUIRE_THROWS_AS(run({.max_tokens = 0}), Error);
  const std::unique_ptr<State> state = small.wrapped.start(2, source);
  REQUIRE_THROWS_WITH(beam_search(small.wrapped, *state, zeros({3, 1}, DType::int32), {.max_tokens = 3}),
                      ContainsSubstring("[2, t]"));
  // Of nine tokens, two were read, and the prompt has three. The last one that is found is not read.
  small.wrapped.next_logits(zeros({2, 2}, DType::int32), *state);
  const Tensor prompt = zeros({2, 3}, DType::int32);
  REQUIRE_THROWS_WITH(beam_search(small.wrapped, *state, prompt, {.max_tokens = 6}),
                      ContainsSubstring("[1, 5]") && ContainsSubstring("got 6"));
  REQUIRE(beam_search(small.wrapped, *state, prompt, {.max_tokens = 5, .end = -1})[1][0].ids.size() == 5);
  small.store.values().values<float>()[0] = std::nanf("");
  small.store.mark_changed();
  REQUIRE_THROWS_AS(run({.max_tokens = 3}), BadLogitsError);
}
