#include "autograd/core/philox.h"

#include <cmath>
#include <numbers>
#include <set>

#include "tests/catch.h"

using namespace maki;

TEST_CASE("Philox gives the known answers of its authors' test vectors") {
  // Source: Random123, file kat_vectors, the rows `philox4x32 10`.
  using Words = std::array<std::uint32_t, 4>;
  REQUIRE(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  REQUIRE(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  REQUIRE(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("streams of different identities differ, and those of one identity agree") {
  std::set<std::uint64_t> first;
  int streams = 0;
  for (const std::uint64_t seed : {0u, 1u}) {
    for (const RandomPurpose purpose : {RandomPurpose::dropout, RandomPurpose::shuffle}) {
      for (const std::uint64_t a : {0u, 1u}) {
        for (const std::uint64_t b : {0u, 1u}) {
          for (const std::uint64_t c : {0u, 1u}) {
            first.insert(RandomStream(seed, purpose, a, b, c).bits64(0));
            ++streams;
            REQUIRE(RandomStream(seed, purpose, a, b, c).bits(9) == RandomStream(seed, purpose, a, b, c).block(2)[1]);
          }
        }
      }
    }
  }
  for (const char* name : {"h.0.attn", "h.1.attn", "h.0.attm", ""}) {
    first.insert(RandomStream(0, RandomPurpose::initialize, name).bits64(0));
    ++streams;
  }
  REQUIRE(first.size() == static_cast<std::size_t>(streams));
}

TEST_CASE("uniform and normal numbers have the moments of their distributions") {
  const RandomStream stream(5, RandomPurpose::test);
  constexpr int n = 200000;
  double uniform = 0, normal = 0, squares = 0, fourth = 0, neighbours = 0;
  std::array<int, 10> counts{};
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = stream.uniform(i), x = stream.normal(i);
    REQUIRE((u >= 0 && u < 1));
    ++counts[static_cast<std::size_t>(stream.below(i, 10))];
    uniform += u;
    normal += x;
    squares += x * x;
    fourth += x * x * x * x;
    neighbours += x * stream.normal(i + 1);
  }
  REQUIRE(uniform / n == Approx(0.5).margin(0.005));
  REQUIRE(normal / n == Approx(0).margin(0.01));
  REQUIRE(squares / n == Approx(1).margin(0.02));
  REQUIRE(fourth / n == Approx(3).margin(0.15));
  REQUIRE(neighbours / n == Approx(0).margin(0.01));
  for (const int count : counts) REQUIRE(count == Approx(n / 10.0).epsilon(0.05));
}

TEST_CASE("two neighbouring normal numbers are the cosine and the sine of one angle, times one radius") {
  const RandomStream stream(7, RandomPurpose::test);
  for (const std::uint64_t i : {0U, 2U, 40U}) {
    // uniform() is below 1 and may be 0; of a number in (0, 1] the logarithm is finite.
    const double radius = std::sqrt(-2 * std::log(stream.uniform(i) + 0x1p-53));
    const double angle = 2 * std::numbers::pi * stream.uniform(i + 1);
    REQUIRE(stream.normal(i) == Approx(radius * std::cos(angle)).epsilon(1e-12));
    REQUIRE(stream.normal(i + 1) == Approx(radius * std::sin(angle)).epsilon(1e-12));
  }
}
