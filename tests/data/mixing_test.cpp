// Context mixing: logistic mixing, repetitions, and that what is predicted is a distribution.
#include <algorithm>
#include <cmath>
#include <memory>

#include "autograd/core/philox.h"
#include "data/mixing/context_mixer.h"
#include "data/mixing/token_traits.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/char_tokenizer.h"
#include "tests/catch.h"
#include "tests/data/random_ids.h"

using namespace maki;
using namespace maki::tests;
using Catch::Matchers::WithinAbs;

namespace {

std::unique_ptr<Tokenizer> letters() { return make_tokenizer("char", "abcde "); }

// What a mixer predicts for a token after a text.
MixedLoss loss_after(const Ids& text, std::int32_t token, std::span<const float> other = {}) {
  const auto tokenizer = letters();
  ContextMixer mixer(*tokenizer, token_counts(text, 6), std::ssize(text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 20) mixer.begin_text();
    mixer.read(text[i], i < 40 ? std::span<const float>() : other);
  }
  return mixer.read(token, other);
}

double mean_loss_of_last(ContextMixer& mixer, const Ids& ids, std::size_t last) {
  double sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const double loss = mixer.read(ids[i]).counts;
    if (i + last >= ids.size()) sum += loss;
  }
  return sum / static_cast<double>(last);
}

// Of what a mixer expects; −1 if the token is among those that no decision tells apart.
double probability_of(std::int32_t token, const TokenCode& code, const std::vector<DecisionProbability>& expected) {
  auto next = expected.begin();
  double probability = -1;
  visit_probable_nodes(
      code, [](auto&&...) {}, [&](std::int32_t) { return *next++; },
      [&](std::int32_t child, float p) { probability = child == token ? static_cast<double>(p) : probability; });
  REQUIRE(next == expected.end());
  return probability;
}

}  // namespace

TEST_CASE("a logistic mixer steps down the gradient of its loss") {
  const std::vector<float> x = {0.5F, -1.5F, 2, 0.25F, -0.75F};
  const auto loss = [&](const std::vector<float>& w, bool bit) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(w[i]) * static_cast<double>(x[i]);
    return std::log1p(std::exp(bit ? -sum : sum));
  };
  for (const bool bit : {false, true}) {
    LogisticMixer mixer(x.size(), 3, 0.3F);
    const float before = mixer.mix(x, 1);
    REQUIRE_THAT(before, WithinAbs(0.3 * 0.5, 1e-6));
    constexpr float kRate = 0.1F;
    mixer.learn(x, bit, kRate);
    std::vector<float> expected(x.size(), 0.3F);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<float> more(x.size(), 0.3F), less = more;
      more[i] += 0.01F;
      less[i] -= 0.01F;
      expected[i] -= kRate * static_cast<float>((loss(more, bit) - loss(less, bit)) / 0.02);
    }
    double dot = 0;
    for (std::size_t i = 0; i < x.size(); ++i) dot += static_cast<double>(expected[i]) * static_cast<double>(x[i]);
    REQUIRE_THAT(mixer.mix(x, 1), WithinAbs(dot, 1e-4));
    REQUIRE(mixer.mix(x, 0) == before);  // other sets of weights have learned nothing
    REQUIRE(mixer.mix(x, 2) == before);
  }
}

TEST_CASE("a correction begins as the identity and learns frequencies by context") {
  ProbabilityCorrection correction(2);
  for (const float p : {0.01F, 0.3F, 0.5F, 0.9F}) {
    REQUIRE_THAT(correction.correct(stretch(p), 0), WithinAbs(p, 0.01));
    REQUIRE_THAT(stretch(squash(stretch(p))), WithinAbs(stretch(p), 1e-4));
  }
  for (int i = 0; i < 2000; ++i) {
    correction.correct(stretch(0.5F), 1);
    correction.learn(i % 10 != 0, 0.02F);
  }
  REQUIRE_THAT(correction.correct(stretch(0.5F), 1), WithinAbs(0.9, 0.05));
  REQUIRE_THAT(correction.correct(stretch(0.5F), 0), WithinAbs(0.5, 0.01));
}

TEST_CASE("counts of a decision remember what happened last") {
  DecisionCount count;
  REQUIRE(count.is_new());
  for (int i = 0; i < 20; ++i) count.learn(false);
  REQUIRE(count.history == 0xF0);
  REQUIRE_THAT(count.probability / 65536.0, WithinAbs(0.25 / 20.5, 0.002));  // the mean, which begins at 1/2
  count.learn(true);
  REQUIRE(count.history == 0x51);
  REQUIRE(count.seen == 21);
  for (int i = 0; i < 400; ++i) count.learn(true);
  REQUIRE(count.seen == DecisionCount::kMaxSeen);
  HistoryMap map;
  REQUIRE(map.probability(0x51) < 0.5F);
  for (int i = 0; i < 500; ++i) map.learn(0x51, i % 4 != 0);
  REQUIRE_THAT(map.probability(0x51), WithinAbs(0.75, 0.02));
  REQUIRE(map.probability(0x41) < 0.5F);
}

TEST_CASE("a context table finds what it stored, and replaces what was seen least often") {
  ContextTable table(8);
  const auto number = [](std::uint64_t context, std::uint16_t member) {
    return static_cast<std::uint16_t>(8 * context + member);
  };
  for (std::uint64_t context = 0; context < 200; ++context) {
    const ContextTable::Place place = table.place(spread_bits(context), 5);
    for (std::uint16_t member = 1; member < 4; ++member) {
      DecisionCount& count = table.find(place, member);
      REQUIRE(count.is_new());
      count.learn(true);
      count.probability = number(context, member);
    }
  }
  int found = 0;
  for (std::uint64_t context = 0; context < 200; ++context) {
    const ContextTable::Place place = table.place(spread_bits(context), 5);
    for (std::uint16_t member = 1; member < 4; ++member)
      found += table.find(place, member).probability == number(context, member) ? 1 : 0;
  }
  REQUIRE(found > 580);  // of 600: few lines are full
  const ContextTable::Place stored = table.place(spread_bits(7), 5);
  REQUIRE(table.look_up(stored, 1) == &table.find(stored, 1));
  for (std::uint64_t context = 1000; context < 1100; ++context) {
    const DecisionCount* const other = table.look_up(table.place(spread_bits(context), 5), 1);
    REQUIRE((other == nullptr || !other->is_new()));  // looking up stores nothing
  }
  REQUIRE(table.look_up(table.place(spread_bits(7), 6), 1) == nullptr);  // of another group
}

TEST_CASE("a decision for which a line has no room replaces a single other one") {
  ContextTable table(1);
  std::vector<ContextTable::Place> places;
  const auto number = [](std::size_t i) { return static_cast<std::uint16_t>(1000 + i); };
  for (std::uint64_t context = 0; places.size() < 11; ++context) {  // a line has ten slots
    const ContextTable::Place place = table.place(context, 1);
    if (place.line != 0) continue;
    DecisionCount& count = table.find(place, 1);
    REQUIRE(count.is_new());
    count.learn(true);
    count.probability = number(places.size());
    places.push_back(place);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const DecisionCount* const found = table.look_up(places[i], 1);
    if (found == nullptr) continue;
    REQUIRE((found->probability == number(i) && found->seen == 1));
    ++kept;
  }
  REQUIRE(kept == 10);
  REQUIRE(table.look_up(places.back(), 1) != nullptr);
}

TEST_CASE("a full context table keeps what was seen often, and the last group as a whole") {
  ContextTable full(1);
  const ContextTable::Place place = full.place(1, 1);
  DecisionCount& often = full.find(place, 1);
  for (int i = 0; i < 200; ++i) often.learn(true);
  for (std::uint64_t context = 2; context < 100; ++context) {
    const ContextTable::Place other = full.place(context, 1);
    for (std::uint16_t member = 1; member < 8; ++member) full.find(other, member).learn(false);
    for (std::uint16_t member = 2; member < 8; ++member) REQUIRE(full.look_up(other, member) != nullptr);
  }
  REQUIRE(full.find(place, 1).seen >= 200);
}

TEST_CASE("what is predicted for all tokens sums to 1, with another predictor and without") {
  const Ids text = random_ids(120, 6);
  const std::vector<float> other = {0.05F, 0.4F, 0.1F, 0.15F, 0.25F, 0.05F};
  for (const std::span<const float> with : {std::span<const float>(), std::span<const float>(other)}) {
    double counts = 0, mixed = 0;
    for (std::int32_t token = 0; token < 6; ++token) {
      const MixedLoss loss = loss_after(text, token, with);
      counts += std::exp(-loss.counts);
      mixed += std::exp(-loss.mixed);
    }
    REQUIRE_THAT(counts, WithinAbs(1, 1e-5));
    REQUIRE_THAT(mixed, WithinAbs(1, 1e-5));
  }
}

TEST_CASE("a context mixer learns what follows what, and repetitions") {
  const auto tokenizer = letters();
  const Ids ids = random_ids(6000, 6);
  ContextMixer mixer(*tokenizer, token_counts(ids, 6), 6000);
  // Two thirds of the tokens follow from the two before, and the others are 0 or 3: at most 0.868 nats per token.
  const double loss = mean_loss_of_last(mixer, ids, 2000);
  REQUIRE(loss == Approx(0.77764).margin(1e-5));  // depends on each context and set of weights
  Ids unit(300);
  const RandomStream stream(3, RandomPurpose::test);
  for (std::size_t i = 0; i < unit.size(); ++i) unit[i] = static_cast<std::int32_t>(stream.below(i, 6));
  Ids repeated;
  for (int i = 0; i < 8; ++i) repeated.insert(repeated.end(), unit.begin(), unit.end());
  ContextMixer again(*tokenizer, token_counts(repeated, 6), 2400);
  REQUIRE(mean_loss_of_last(again, repeated, 300) < 0.1);
}

TEST_CASE("repetitions are found, trusted and left") {
  const TokenCode code(std::vector<std::int64_t>(6), Ids{0, 1, 2, 3, 4, 5});
  Ids text;
  RepeatFinder finder(text, code, 3);
  std::size_t predicted = 0, right = 0;
  for (const std::int32_t token : {0, 1, 2, 3, 4, 0, 1, 2, 3, 5, 1, 2, 3, 4}) {
    finder.begin_token();
    const auto path = code.path(token);
    bool all = true;
    for (const auto [node, bit] : path) {
      const float x = finder.predict(node);
      if (x == 0) all = false;
      if (x != 0 && (x > 0) != bit) all = false;
      predicted += x != 0 ? 1U : 0U;
      finder.learn(bit);
    }
    right += all ? 1U : 0U;
    text.push_back(token);
    finder.end_token();
  }
  REQUIRE(right == 1);  // the 3 after 0 1 2; then 5 instead of 4 and, after 1 2 3, 4 instead of 5
  REQUIRE(predicted > 2);
}

TEST_CASE("another predictor that is right is believed, and one that is wrong is ignored") {
  const auto tokenizer = letters();
  Ids ids(3000);
  const RandomStream stream(9, RandomPurpose::test);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(stream.below(i, 6));
  for (const std::int32_t shift : {0, 1}) {
    ContextMixer mixer(*tokenizer, token_counts(ids, 6), 3000);
    double counts = 0, mixed = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::vector<float> other(6, 0.02F);
      // Right, or a guess that has nothing to do with the token.
      const std::int32_t guess = shift == 0 ? ids[i] : static_cast<std::int32_t>(i) % 6;
      other[static_cast<std::size_t>(guess)] = 0.9F;
      const MixedLoss loss = mixer.read(ids[i], other);
      if (i < 1500) continue;
      counts += loss.counts / 1500;
      mixed += loss.mixed / 1500;
    }
    REQUIRE_THAT(counts, WithinAbs(std::log(6.0), 0.15));
    if (shift == 0) REQUIRE(mixed < 0.2);
    if (shift == 1) REQUIRE_THAT(mixed, WithinAbs(counts, 0.05));
  }
}

TEST_CASE("another predictor is believed from its first prediction on") {
  const auto tokenizer = letters();
  Ids ids(2000);
  const RandomStream stream(9, RandomPurpose::test);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(stream.below(i, 6));
  ContextMixer mixer(*tokenizer, token_counts(ids, 6), 3000);
  for (const std::int32_t id : ids) mixer.read(id);
  std::vector<float> other(6, 0.01F);
  other[2] = 0.95F;
  const MixedLoss loss = mixer.read(2, other);
  REQUIRE(loss.counts > 1);
  REQUIRE(loss.mixed < loss.counts - 0.7);
}

TEST_CASE("another predictor does not change what the counts predict") {
  const auto tokenizer = letters();
  const Ids ids = random_ids(500, 6);
  ContextMixer with(*tokenizer, token_counts(ids, 6), 500), without(*tokenizer, token_counts(ids, 6), 500);
  const std::vector<float> other = {0.05F, 0.4F, 0.1F, 0.15F, 0.25F, 0.05F};
  for (const std::int32_t id : ids) {
    const MixedLoss loss = without.read(id);
    REQUIRE(loss.mixed == loss.counts);
    REQUIRE(with.read(id, other).counts == loss.counts);
  }
}

TEST_CASE("a context mixer knows where a text begins") {
  const auto tokenizer = letters();
  const RandomStream stream(4, RandomPurpose::test);
  std::vector<std::int64_t> counts(6, 100);
  ContextMixer mixer(*tokenizer, counts, 2000);
  double first = 0, rest = 0;
  for (std::uint64_t text = 0; text < 100; ++text) {  // each begins with 5, which is drawn as any other elsewhere
    mixer.begin_text();
    const double loss = mixer.read(5).counts;
    if (text >= 50) first += loss / 50;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const double random = mixer.read(static_cast<std::int32_t>(stream.below(20 * text + i, 6))).counts;
      if (text >= 50) rest += random / 1000;
    }
  }
  REQUIRE(first < 0.2);
  REQUIRE_THAT(rest, WithinAbs(std::log(6.0), 0.3));
}

TEST_CASE("a context mixer rejects a predictor of another vocabulary") {
  const auto tokenizer = letters();
  ContextMixer mixer(*tokenizer, std::vector<std::int64_t>(6), 10);
  const std::vector<float> other(5, 0.2F);
  REQUIRE_THROWS_WITH(mixer.read(0, other), ContainsSubstring("each of 6 tokens; got 5"));
}

TEST_CASE("what a context mixer expects is what it then predicts, and is not learned") {
  // Of three tokens, one has a single decision; of sixteen, some have decisions of two groups.
  for (const std::int32_t vocabulary : {2, 3, 6, 16}) {
    INFO(vocabulary);
    double sum = 0;
    std::int64_t compared = 0, single = 0;
    const auto alphabet = std::string("abcde fghijklmno").substr(0, static_cast<std::size_t>(vocabulary));
    const auto tokenizer = make_tokenizer("char", alphabet);
    const Ids ids = random_ids(3000, vocabulary);
    const auto counts = token_counts(ids, vocabulary);
    const TokenCode code(counts, ids_by_bytes(*tokenizer));
    const auto use = ContextMixer::Use::learn_then_predict;
    ContextMixer mixer(*tokenizer, counts, 3000, use), other(*tokenizer, counts, 3000, use);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::vector<DecisionProbability> expected;
      if (i > 500 && i % 7 == 0) mixer.expect(expected);
      const double loss = mixer.read(ids[i]).counts;
      REQUIRE(loss == other.read(ids[i]).counts);
      const double p = expected.empty() ? -1 : probability_of(ids[i], code, expected);
      if (p < 0) continue;
      const double difference = std::abs(p - std::exp(-loss));
      sum += difference;
      ++compared;
      if (code.path(ids[i]).size() > 1) continue;  // read() learns each decision of a token before the next one
      ++single;
      REQUIRE(difference <= 0x1p-15);
    }
    REQUIRE(compared > 300);
    REQUIRE((single > 50) == (vocabulary <= 3));
    REQUIRE(sum / static_cast<double>(compared) < 0.02);
  }
}

TEST_CASE("a context mixer follows tokens without learning them") {
  const auto tokenizer = letters();
  const Ids ids = random_ids(2000, 6), others = random_ids(200, 6, 8);
  const auto use = ContextMixer::Use::learn_then_predict;
  ContextMixer mixer(*tokenizer, token_counts(ids, 6), 2000, use), other(*tokenizer, token_counts(ids, 6), 2000, use);
  for (const std::int32_t id : ids) {
    mixer.read(id);
    other.read(id);
  }
  for (const std::int32_t id : others) mixer.follow(id);
  mixer.begin_text();
  other.begin_text();
  for (const std::int32_t id : ids) REQUIRE(mixer.read(id).counts == other.read(id).counts);
}
