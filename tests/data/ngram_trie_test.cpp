// N-gram counts as a tree: predictions against the model that was counted, and without a part of the text against the
// definition of Kneser-Ney counts; the saved form.
#include "data/ngram/ngram_trie.h"

#include <cmath>
#include <map>
#include <rapidcheck.h>
#include <set>

#include "data/io/error.h"
#include "data/ngram/held_out_counts.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/data/random_ids.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Restart = std::optional<std::int32_t>;

// How many of the first tokens of a text no context continues beyond, because a token `restart` follows them.
std::size_t forgotten(const Ids& text, Restart restart) {
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == restart) return i;
  }
  return 0;
}

// Kneser–Ney counts by their definition: n-grams whose last token is not in [begin, end) of the whole text, and which
// have the token `restart` only as their first or last one.
class Definition {
 public:
  Definition(const std::vector<Ids>& pieces, int order, std::int64_t begin, std::int64_t end, Restart restart)
      : order_(order), restart_(restart) {
    std::set<Ids> present;
    std::int64_t position = 0;
    for (const Ids& piece : pieces) {
      for (std::size_t i = 0; i < piece.size(); ++i, ++position) {
        if (position >= begin && position < end) continue;
        const std::size_t most =
            i + 1 - forgotten({piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(i)}, restart);
        for (std::size_t n = 1; n <= std::min(most, static_cast<std::size_t>(order)); ++n) {
          const Ids ngram(piece.begin() + static_cast<std::ptrdiff_t>(i + 1 - n),
                          piece.begin() + static_cast<std::ptrdiff_t>(i + 1));
          present.insert(ngram);
          if (n == static_cast<std::size_t>(order) || n == most) ++counts_[ngram];  // whenever it occurs
        }
      }
    }
    for (const Ids& ngram : present) {
      if (ngram.size() > 1) ++counts_[Ids(ngram.begin() + 1, ngram.end())];
    }
  }

  double probability(const Ids& text, std::int32_t token, const NgramTrie& trie) const {
    double p = 1 / static_cast<double>(trie.vocab_size());
    const std::size_t most = text.size() - forgotten(text, restart_);
    for (std::size_t n = 0; n < std::min(most + 1, static_cast<std::size_t>(order_)); ++n) {
      const Ids context(text.end() - static_cast<std::ptrdiff_t>(n), text.end());
      const NgramTrie::Level& level = trie.levels()[n];
      double total = 0, weight = 0, kept = 0;
      for (const auto& [ngram, count] : counts_) {
        if (ngram.size() != n + 1 || !std::equal(context.begin(), context.end(), ngram.begin())) continue;
        total += count;
        weight += level.discount(count);
        if (ngram.back() == token) kept = count - level.discount(count);
      }
      if (total > 0) p = (kept + weight * p) / total;
    }
    return p;
  }

 private:
  int order_;
  Restart restart_;
  std::map<Ids, std::uint32_t> counts_;
};

rc::Gen<std::vector<Ids>> any_pieces(std::int32_t vocab_size) {
  return rc::gen::nonEmpty(rc::gen::container<std::vector<Ids>>(
      rc::gen::nonEmpty(rc::gen::container<Ids>(rc::gen::inRange<std::int32_t>(0, vocab_size)))));
}

NgramContext context_of(const NgramTrie& trie, const Ids& text) {
  NgramContext context;
  for (const std::int32_t id : text) context = trie.next(context, id);
  return context;
}

}  // namespace

TEST_CASE("A trie predicts what the counts that it was made of predict", "[ngram_trie]") {
  REQUIRE(rc::check([] {
    const auto vocab = *rc::gen::inRange<std::int32_t>(1, 6);
    const auto order = *rc::gen::inRange(1, kMaxCountedNgram + 1);
    const auto pieces = *any_pieces(vocab);
    NgramModel model(vocab, order, {}, *rc::gen::arbitrary<bool>() ? Restart(0) : std::nullopt);
    model.count(pieces_of(vocab, pieces));
    const NgramTrie trie(model);
    const Ids text = *rc::gen::container<Ids>(rc::gen::inRange<std::int32_t>(0, vocab));
    std::vector<float> logs(static_cast<std::size_t>(vocab), -1e9F);
    trie.log_probabilities(context_of(trie, text), logs);
    NgramContext context;
    for (const std::int32_t id : text) context = model.next(context, id);
    RC_ASSERT(context.length == context_of(trie, text).length);
    double sum = 0;
    for (std::int32_t token = 0; token < vocab; ++token) {
      const double p = std::exp(static_cast<double>(logs[static_cast<std::size_t>(token)]));
      RC_ASSERT(std::abs(p / model.probability(text, token) - 1) < 1e-5);
      RC_ASSERT(std::abs(std::exp(trie.log_probability(context_of(trie, text), token)) / p - 1) < 1e-5);
      sum += p;
    }
    RC_ASSERT(std::abs(sum - 1) < 1e-5);
  }));
}

TEST_CASE("Held-out counts are those of the text without the part", "[ngram_trie]") {
  REQUIRE(rc::check([] {
    const auto vocab = *rc::gen::inRange<std::int32_t>(1, 5);
    const auto order = *rc::gen::inRange(1, kMaxCountedNgram + 1);
    const auto pieces = *any_pieces(vocab);
    const Tokens tokens = pieces_of(vocab, pieces);
    const Restart restart = *rc::gen::arbitrary<bool>() ? Restart(0) : std::nullopt;
    NgramModel model(vocab, order, {}, restart);
    model.count(tokens);
    const NgramTrie trie(model);
    const HeldOutCounts held_out(trie, tokens, model.counted());
    const auto size = static_cast<std::int64_t>(tokens.size());
    const Ids text = *rc::gen::container<Ids>(rc::gen::inRange<std::int32_t>(0, vocab));
    std::vector<float> logs(static_cast<std::size_t>(vocab), -1e9F);
    for (std::int64_t part = 0; part < kHeldOutParts; ++part) {
      const std::int64_t begin = part * size / kHeldOutParts, end = (part + 1) * size / kHeldOutParts;
      if (begin == end) continue;
      RC_ASSERT(&held_out.part_of(begin) == &held_out.part_of(end - 1));
      const Definition expected(pieces, order, begin, end, restart);
      for (const Ids& before : {text, pieces.back()}) {
        trie.log_probabilities(context_of(trie, before), logs, &held_out.part_of(begin));
        for (std::int32_t token = 0; token < vocab; ++token) {
          const double p = std::exp(static_cast<double>(logs[static_cast<std::size_t>(token)]));
          RC_ASSERT(std::abs(p / expected.probability(before, token, trie) - 1) < 1e-5);
        }
      }
    }
  }));
}

TEST_CASE("Counts of blocks of a long text are left out where they were counted", "[ngram_trie]") {
  constexpr std::int64_t kBlock = 1 << 14;
  Ids ids;
  for (std::int64_t i = 0, state = 1; i < 3 * kBlock; ++i) {
    state = (state * 75 + 74) % 65537;
    ids.push_back(static_cast<std::int32_t>(state % 4));
  }
  const Tokens tokens = pieces_of(4, {ids});
  NgramModel model(4, 3, {.tokens = 2 * kBlock});
  REQUIRE(model.count(tokens) == Approx(2.0 / 3));
  REQUIRE(model.counted().size() == 2);  // the first block and the last
  REQUIRE(model.counted()[1].begin == 2 * kBlock);
  const NgramTrie trie(model);
  const HeldOutCounts held_out(trie, tokens, model.counted());
  std::vector<std::uint32_t> left(trie.levels().back().counts);
  std::uint32_t least = 0;
  for (std::int64_t part = 0; part < kHeldOutParts; ++part) {
    const LessCounted& less = held_out.part_of(part * std::ssize(ids) / kHeldOutParts).levels.back();
    if (part == 4 || part == 5) REQUIRE(less.entries().empty());  // in the block that was not counted
    for (const auto& [ngram, count] : less.entries()) left[ngram] -= count;
    least += less.entries().empty() ? 1 : 0;
  }
  REQUIRE(least == 2);
  for (const std::uint32_t count : left) REQUIRE(count == 0);  // each occurrence is in one part
}

TEST_CASE("What is held out is found near each n-gram", "[ngram_trie]") {
  REQUIRE(rc::check([] {
    const auto less = *rc::gen::container<std::vector<std::uint32_t>>(300, rc::gen::inRange<std::uint32_t>(0, 3));
    const LessCounted list(less);
    for (std::uint32_t ngram = 0; ngram < less.size(); ++ngram) {
      const auto first = std::ranges::lower_bound(list.entries(), ngram, {}, &LessCounted::Entry::ngram);
      const auto place = static_cast<std::size_t>(first - list.entries().begin());
      RC_ASSERT(list.near(ngram) <= place);
      RC_ASSERT(place < list.near(ngram) + 64);
      if (less[ngram] > 0) RC_ASSERT(first->ngram == ngram && first->less == less[ngram]);
    }
  }));
}

TEST_CASE("Saved counts are restored", "[ngram_trie]") {
  REQUIRE(rc::check([] {
    const auto vocab = *rc::gen::inRange<std::int32_t>(1, 300);
    const auto pieces = *any_pieces(vocab);
    NgramModel model(vocab, 3);
    model.count(pieces_of(vocab, pieces));
    const NgramTrie trie(model);
    const std::string saved = trie.save();
    const NgramTrie again = load_ngram_trie(saved, vocab);
    RC_ASSERT(again.save() == saved);
    const NgramContext context = context_of(trie, pieces.back()), same = context_of(again, pieces.back());
    std::vector<float> a(static_cast<std::size_t>(vocab)), b = a;
    trie.log_probabilities(context, a);
    again.log_probabilities(same, b);
    RC_ASSERT(a == b);
  }));
}

TEST_CASE("Damaged counts are refused", "[ngram_trie]") {
  NgramModel model(3, 2);
  model.count(pieces_of(3, {{0, 1, 2, 0, 1}}));
  const std::string saved = NgramTrie(model).save();
  REQUIRE_NOTHROW(load_ngram_trie(saved, 3));
  for (std::size_t size = 0; size < saved.size(); ++size)
    CHECK_THROWS_AS(load_ngram_trie(saved.substr(0, size), 3), CorpusError);
  CHECK_THROWS_AS(load_ngram_trie(saved + '\0', 3), CorpusError);
  std::string longer = saved;  // the first number in two bytes instead of one
  const std::size_t number = saved.find('\n') + 1;
  longer[number] = static_cast<char>(longer[number] | 0x80);
  longer.insert(number + 1, 1, '\0');
  CHECK_THROWS_AS(load_ngram_trie(longer, 3), CorpusError);
  int refused = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::string damaged = saved;
    damaged[i] = static_cast<char>(0xFF);
    try {
      load_ngram_trie(damaged, 3);
    } catch (const CorpusError&) {
      ++refused;
    }
  }
  CHECK(refused > static_cast<int>(saved.size() / 2));
}

TEST_CASE("Counts of another vocabulary are refused before memory is taken for them", "[ngram_trie]") {
  NgramModel model(3, 2);
  model.count(pieces_of(3, {{0, 1, 2, 0, 1}}));
  std::string saved = NgramTrie(model).save();
  CHECK_THROWS_WITH(load_ngram_trie(saved, 4), ContainsSubstring("the 4 tokens of the vocabulary; got counts for 3"));
  const std::size_t number = saved.find('\n') + 1;
  saved.replace(number, 1, "\x80\x80\x80\x08");  // 2^24 instead of 3
  start_peak();
  CHECK_THROWS_AS(load_ngram_trie(saved, 3), CorpusError);
  CHECK(peak_bytes() < 1 << 16);
}
