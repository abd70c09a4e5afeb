// N-gram counts: probabilities against sums over plain maps, sums of 1, losses, pieces, limits.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autograd/core/philox.h"
#include "data/ngram/ngram_model.h"
#include "tests/catch.h"
#include "tests/data/random_ids.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Interpolated modified Kneser–Ney smoothing, written down as Chen and Goodman 1999 do: the longest n-grams with their
// counts, shorter ones with the number of tokens before them (the beginning of a piece counts whenever it occurs).
class Reference {
 public:
  Reference(const std::vector<Ids>& pieces, std::size_t order, std::int64_t vocabulary)
      : order_(order), vocabulary_(vocabulary) {
    std::set<Ids> seen;
    for (const Ids& piece : pieces) {
      for (std::size_t i = 0; i < piece.size(); ++i) {
        for (std::size_t n = 1; n <= std::min(order, i + 1); ++n) {
          const Ids ngram(piece.begin() + static_cast<std::ptrdiff_t>(i + 1 - n),
                          piece.begin() + static_cast<std::ptrdiff_t>(i + 1));
          const bool begins = n == i + 1, longest = n == order;
          Ids longer;
          if (!begins)
            longer.assign(piece.begin() + static_cast<std::ptrdiff_t>(i - n),
                          piece.begin() + static_cast<std::ptrdiff_t>(i + 1));
          if (longest || begins || seen.insert(longer).second) ++counts_[ngram];
        }
      }
    }
    for (std::size_t n = 1; n <= order; ++n) discounts_.push_back(discounts(n));
  }

  double probability(Ids context, std::int32_t token) const {
    if (context.size() + 1 > order_)
      context.erase(context.begin(), context.end() - static_cast<std::ptrdiff_t>(order_ - 1));
    double lower = 1 / static_cast<double>(vocabulary_);
    if (!context.empty()) lower = probability(Ids(context.begin() + 1, context.end()), token);
    double total = 0, weight = 0, kept = 0;
    for (std::int32_t next = 0; next < vocabulary_; ++next) {
      Ids ngram = context;
      ngram.push_back(next);
      const auto found = counts_.find(ngram);
      if (found == counts_.end()) continue;
      const auto count = static_cast<double>(found->second),
                 discount = discounts_[context.size()][std::min<std::size_t>(found->second, 3)];
      total += count;
      weight += discount;
      if (next == token) kept = count - discount;
    }
    return total == 0 ? lower : (kept + weight * lower) / total;
  }

 private:
  std::vector<double> discounts(std::size_t n) const {
    std::vector<double> with(5), d = {0, 0.5, 0.75, 1};
    for (const auto& [ngram, count] : counts_) {
      if (ngram.size() == n && count <= 4) ++with[count];
    }
    const double y = with[1] / (with[1] + 2 * with[2]);
    for (std::size_t j = 1; j <= 3; ++j) {
      const auto x = static_cast<double>(j);
      if (with[1] > 0 && with[j] > 0 && with[j + 1] > 0)
        d[j] = std::clamp(x - (x + 1) * y * with[j + 1] / with[j], 0.01, x);
    }
    return d;
  }

  std::size_t order_;
  std::int64_t vocabulary_;
  std::map<Ids, std::size_t> counts_;
  std::vector<std::vector<double>> discounts_;
};

Ids slice(const Ids& ids, std::size_t begin, std::size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Over every target of a text, whose contexts begin with its pieces.
double reference_loss(const Reference& reference, const std::vector<Ids>& pieces) {
  double sum = 0, targets = 0;
  for (const Ids& piece : pieces) {
    for (std::size_t i = 1; i < piece.size(); ++i, ++targets)
      sum -= std::log(reference.probability(slice(piece, i - std::min<std::size_t>(i, 5), i), piece[i]));
  }
  return sum / targets;
}

constexpr std::size_t kReadTogether = 16384;  // of tokens that are read together

}  // namespace

TEST_CASE("n-grams of a short text, by hand") {
  // a b a b a: a once at the beginning; b after a, a after b, each preceded by one token alone.
  NgramModel model(2, 2);
  model.count(Ids{0, 1, 0, 1, 0});
  // Unigrams: a 2 (beginning, ba), b 1 (ab); n1 = n2 = 1, so y = 1/3 and D1 = 1 − 2/3; D2 has no n3 and stays 3/4.
  const double d1 = 1.0 / 3, d2 = 0.75, a = (2 - d2 + (d1 + d2) / 2) / 3;
  REQUIRE(std::abs(model.probability(Ids{}, 0) - a) < 1e-15);
  // Bigrams: ab 2, ba 2; nothing was counted once, so D2 stays 3/4.
  REQUIRE(std::abs(model.probability(Ids{1}, 0) - (2 - 0.75 + 0.75 * a) / 2) < 1e-15);
  REQUIRE(std::abs(model.probability(Ids{0}, 0) - 0.75 * a / 2) < 1e-15);
  REQUIRE(model.ngrams() == 4);
}

TEST_CASE("n-gram probabilities are those of modified Kneser-Ney smoothing, in every context") {
  for (const auto& [order, vocabulary, size] :
       {std::tuple{1, 5, 300}, {2, 5, 300}, {3, 4, 1000}, {4, 7, 2000}, {5, 3, 700}, {6, 3, 900}, {6, 40, 1500}}) {
    INFO(order << " " << vocabulary);
    const auto n = static_cast<std::size_t>(size);
    const Ids ids = random_ids(n, vocabulary);
    const std::vector<Ids> pieces = {slice(ids, 0, n / 3), slice(ids, n / 3, n / 3 + 2), slice(ids, n / 3 + 2, n)};
    NgramModel model(vocabulary, order);
    REQUIRE(model.count(pieces_of(vocabulary, pieces)) == 1);
    const Reference reference(pieces, static_cast<std::size_t>(order), vocabulary);
    const Ids others = random_ids(400, vocabulary, 6);
    for (std::size_t i = 0; i + 8 < others.size(); i += 3) {
      const Ids context = slice(others, i, i + i % 8);
      const std::int32_t token = others[i + 8];
      const double p = reference.probability(context, token);
      REQUIRE(std::abs(model.probability(context, token) - p) < 1e-12 * p);
    }
  }
}

TEST_CASE("n-gram probabilities are positive and sum to 1, whatever the text") {
  const std::vector<std::pair<const char*, Ids>> texts = {{"none", {}},
                                                          {"one token", {2}},
                                                          {"two", {2, 1}},
                                                          {"one token again and again", Ids(500, 3)},
                                                          {"random", random_ids(5000, 11)},
                                                          {"each once", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}};
  for (const auto& [name, ids] : texts) {
    INFO(name);
    for (int order = 1; order <= kMaxCountedNgram; ++order) {
      NgramModel model(11, order);
      model.count(ids);
      const Ids others = random_ids(60, 11, 7);
      for (std::size_t i = 0; i + 6 < others.size(); ++i) {
        const Ids context = i % 2 == 0 || ids.size() < 7 ? slice(others, i, i + i % 7) : slice(ids, 0, i % 7);
        double sum = 0;
        for (std::int32_t token = 0; token < 11; ++token) {
          const double p = model.probability(context, token);
          REQUIRE(p > 0);
          sum += p;
        }
        REQUIRE(std::abs(sum - 1) < 1e-12);
      }
    }
  }
}

TEST_CASE("a text of several blocks and pieces is counted and evaluated as a whole") {
  const Ids ids = random_ids(3 * kReadTogether + 100, 6);
  // Pieces that end at a block, shortly after one, in the middle of one, and shortly before one.
  const std::vector<std::size_t> ends = {kReadTogether,         2 * kReadTogether + 1,
                                         2 * kReadTogether + 3, 2 * kReadTogether + 5000,
                                         3 * kReadTogether - 1, ids.size()};
  std::vector<Ids> pieces;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    pieces.push_back(slice(ids, begin, end));
    begin = end;
  }
  NgramModel model(6, 4);
  REQUIRE(model.count(pieces_of(6, pieces)) == 1);
  const Reference reference(pieces, 4, 6);
  const Ids context = {1, 4, 3};
  for (std::int32_t token = 0; token < 6; ++token)
    REQUIRE(std::abs(model.probability(context, token) - reference.probability(context, token)) < 1e-12);
  const NgramLoss loss = model.evaluate(pieces_of(6, pieces));
  REQUIRE(loss.share == 1);
  REQUIRE(loss.targets == static_cast<std::int64_t>(ids.size() - pieces.size()));
  REQUIRE(std::abs(loss.loss - reference_loss(reference, pieces)) < 1e-11);
}

TEST_CASE("counts of single tokens predict every token of a text but the first of each piece") {
  const Ids ids = random_ids(3 * kReadTogether, 6);
  NgramModel model(6, 1);
  REQUIRE(model.count(ids) == 1);
  REQUIRE(model.evaluate(ids).targets == std::ssize(ids) - 1);
  const std::vector<Ids> pieces = {slice(ids, 0, kReadTogether), slice(ids, kReadTogether, kReadTogether + 7),
                                   slice(ids, kReadTogether + 7, ids.size())};
  REQUIRE(model.evaluate(pieces_of(6, pieces)).targets == std::ssize(ids) - std::ssize(pieces));
}

TEST_CASE("counting token by token is counting the text") {
  const Ids ids = random_ids(2000, 9);
  NgramModel whole(9), single(9);
  whole.count(ids);
  NgramContext context;
  for (const std::int32_t id : ids) context = single.observe(context, id);
  single.fit_discounts();
  REQUIRE(single.ngrams() == whole.ngrams());
  const Ids last = slice(ids, ids.size() - 5, ids.size());
  for (std::int32_t token = 0; token < 9; ++token) {
    REQUIRE(single.probability(last, token) == whole.probability(last, token));
    REQUIRE(single.probability(context, token) == whole.probability(last, token));
  }
  // A context that was looked up and does not occur can be continued as well.
  const NgramContext foreign = single.next(single.next({}, 8), 8);
  single.observe(foreign, 3);
  REQUIRE(single.probability(single.observe({}, 5), 2) > 0);
}

TEST_CASE("a text beyond the limit of tokens is counted in blocks that are spread over it, and the share is told") {
  // Every part of the text has an alphabet of its own.
  constexpr std::size_t kParts = 8;
  Ids ids;
  for (std::size_t part = 0; part < kParts; ++part) {
    for (const std::int32_t id : random_ids(2 * kReadTogether, 4, part))
      ids.push_back(id + 4 * static_cast<std::int32_t>(part));
  }
  const NgramLimits limits{.tokens = static_cast<std::int64_t>(kParts * kReadTogether)};
  NgramModel model(4 * kParts, 3, limits);
  REQUIRE(model.count(ids) == 0.5);
  NgramModel other(4 * kParts, 3);
  REQUIRE(other.count(ids) == 1);
  for (std::size_t part = 0; part < kParts; ++part) {
    INFO(part);
    const Ids context(2, 4 * static_cast<std::int32_t>(part));
    const double p = model.probability(context, context[0]), q = other.probability(context, context[0]);
    REQUIRE(std::abs(p - q) < 0.05);
  }
  const NgramLoss half = model.evaluate(ids), whole = other.evaluate(ids);
  REQUIRE(half.share == 0.5);
  REQUIRE(half.targets == static_cast<std::int64_t>(kParts * kReadTogether) - 1);
  REQUIRE(whole.targets == std::ssize(ids) - 1);
  REQUIRE(std::abs(half.loss - whole.loss) < 0.02);
}

TEST_CASE("the number of n-grams is limited, and what is there still predicts") {
  const Ids ids = random_ids(100000, 1000);
  constexpr std::int64_t kLimit = 50000;
  NgramModel model(1000, 6, {.ngrams = kLimit});
  const double share = model.count(ids);
  REQUIRE(model.is_full());
  REQUIRE(model.ngrams() > kLimit - 6);
  REQUIRE(model.counted().size() == 1);  // the limit is reached in the first block, which is read to its end
  REQUIRE(share == Approx(kReadTogether / 100000.0));
  REQUIRE(model.evaluate(ids).loss < std::log(1000.0));
}

TEST_CASE("counting and evaluating end when they are asked to") {
  const Ids ids = random_ids(5 * kReadTogether, 5);
  NgramModel model(5);
  int asked = 0;
  REQUIRE(model.count(ids, [&] { return ++asked == 3; }) == 0.4);
  asked = 0;
  REQUIRE(model.evaluate(ids, [&] { return ++asked == 2; }).share == 0.2);
  REQUIRE(model.evaluate(Ids{}).targets == 0);
  REQUIRE(model.evaluate(Ids{1}).targets == 0);
  REQUIRE(model.evaluate(Ids{}).loss == 0);
}

TEST_CASE("what can be predicted is predicted: a cycle costs nothing, and noise its entropy") {
  Ids cycle;
  for (int i = 0; i < 3000; ++i) cycle.push_back(i % 7);
  NgramModel knows(7);
  knows.count(cycle);
  REQUIRE(knows.evaluate(cycle).loss < 0.01);
  const RandomStream stream(3, RandomPurpose::test);
  Ids noise;
  for (std::uint64_t i = 0; i < 40000; ++i) noise.push_back(static_cast<std::int32_t>(stream.below(i, 4)));
  NgramModel guesses(4);
  guesses.count(slice(noise, 0, 20000));
  const double loss = guesses.evaluate(slice(noise, 20000, 40000)).loss;
  REQUIRE(loss > std::log(4.0) - 0.01);
  REQUIRE(loss < std::log(4.0) + 0.06);
}
