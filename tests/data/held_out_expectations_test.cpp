// What counts expect in each place of a text that they have read without the part that this place is in.
#include "data/mixing/held_out_expectations.h"

#include <numeric>
#include <utility>

#include "data/mixing/context_mixer.h"
#include "data/mixing/token_traits.h"
#include "data/tokenizer/char_tokenizer.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/data/random_ids.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;
using Catch::Matchers::WithinAbs;

namespace {

std::unique_ptr<Tokenizer> abc_tokenizer() { return make_tokenizer("char", "abcde "); }

std::vector<float> expected_at(const HeldOutExpectations& expectations, std::int64_t position) {
  std::vector<float> probabilities(6);
  expectations.probabilities(position, probabilities);
  return probabilities;
}

}  // namespace

TEST_CASE("expectations of each place are those of a mixer that has read the other parts") {
  const auto tokenizer = abc_tokenizer();
  const Ids ids = random_ids(1000, 6);
  const HeldOutExpectations expectations(*tokenizer, ids);
  const std::vector<std::int64_t> counts = token_counts(ids, 6);
  const TokenCode code(counts, ids_by_bytes(*tokenizer));
  for (const std::size_t begin : {std::size_t{0}, std::size_t{250}, std::size_t{750}}) {
    const std::size_t end = begin + 250;
    ContextMixer mixer(*tokenizer, counts, 1000, ContextMixer::Use::learn_then_predict);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i == end) mixer.begin_text();
      if (i < begin || i >= end) mixer.read(ids[i]);
    }
    mixer.begin_text();
    for (std::size_t i = begin > 256 ? begin - 256 : 0; i < end; ++i) {
      std::vector<DecisionProbability> expected;
      mixer.expect(expected);
      mixer.follow(ids[i]);
      if (i < begin) continue;
      const std::vector<float> probabilities = expected_at(expectations, static_cast<std::int64_t>(i));
      auto next = expected.begin();
      visit_probable_nodes(
          code, [](auto&&...) {}, [&](std::int32_t) { return *next++; },
          [&](std::int32_t child, float p) {
            float sum = 0;
            for (const std::int32_t id : code.tokens_below(child))
              sum += probabilities.at(static_cast<std::size_t>(id));
            REQUIRE_THAT(sum, WithinAbs(p, 1e-6));
          });
      REQUIRE_THAT(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), WithinAbs(1, 1e-5));
    }
  }
}

TEST_CASE("nothing that a part contains changes what is expected in it before") {
  const auto tokenizer = abc_tokenizer();
  const Ids ids = random_ids(1000, 6);
  Ids changed = ids;
  for (std::size_t i = 350; i + 1 < 500; i += 2) std::swap(changed[i], changed[i + 1]);  // counts are the same
  REQUIRE(changed != ids);
  const HeldOutExpectations before(*tokenizer, ids), after(*tokenizer, changed);
  for (std::int64_t i = 250; i <= 350; ++i) REQUIRE(expected_at(before, i) == expected_at(after, i));
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < 250; ++i) others += expected_at(before, i) == expected_at(after, i) ? 0 : 1;
  REQUIRE(others > 100);  // other parts have read it
}

TEST_CASE("tokens that are not expected share the rest in proportion to how often they occur") {
  const auto tokenizer = abc_tokenizer();
  Ids ids = {2, 3, 3, 3};
  for (int i = 0; i < 600; ++i) ids.insert(ids.end(), {0, 1});
  const HeldOutExpectations expectations(*tokenizer, ids);
  const std::vector<float> p = expected_at(expectations, 605);  // after a 0
  REQUIRE(p[1] > 0.99F);
  REQUIRE(p[2] > 0);
  REQUIRE(p[3] / p[2] == Approx(3.5 / 1.5).epsilon(1e-3));
  REQUIRE_THAT(std::accumulate(p.begin(), p.end(), 0.0), WithinAbs(1, 1e-6));
}

TEST_CASE("no context of an expectation continues beyond the beginning of a piece") {
  const auto tokenizer = abc_tokenizer();
  const Ids first = random_ids(3000, 6), second = random_ids(1000, 6, 9);
  Ids other = first;
  std::swap(other[2999], other[2998]);  // the last tokens of the piece
  REQUIRE(other != first);
  const Tokens with = pieces_of(6, {first, second}), without = pieces_of(6, {other, second});
  const HeldOutExpectations before(*tokenizer, with), after(*tokenizer, without);
  // The part that begins with the second piece has read both endings, which tell it the same of its first token.
  const std::vector<float> p = expected_at(before, 3000), q = expected_at(after, 3000);
  for (std::size_t id = 0; id < 6; ++id) REQUIRE_THAT(p[id], WithinAbs(q[id], 0.02));
}

TEST_CASE("how much memory expectations take is known before") {
  const auto bytes = HeldOutExpectations::bytes_to_make;
  const auto tokenizer = abc_tokenizer();
  const Ids ids = random_ids(40, 6);
  const ThreadsScope scope(1);
  start_peak();
  const HeldOutExpectations expectations(*tokenizer, ids);
  REQUIRE(static_cast<double>(peak_bytes()) == Approx(bytes(40, 1)).epsilon(0.25));
  // What is kept of each token, and what each thread takes, of which there are no more than parts.
  constexpr std::int64_t kLong = 1'000'000, kMillion = 1'000'000;
  const std::int64_t kept = bytes(2 * kLong, 1) - bytes(kLong, 1), by_thread = bytes(kLong, 2) - bytes(kLong, 1);
  REQUIRE((kept >= 200 * kLong && kept <= 400 * kLong));
  REQUIRE((by_thread >= 300 * kMillion && by_thread <= 380 * kMillion));
  REQUIRE(bytes(kLong, 4) - bytes(kLong, 1) == 3 * by_thread);
  REQUIRE(bytes(kLong, 16) == bytes(kLong, 4));
}
