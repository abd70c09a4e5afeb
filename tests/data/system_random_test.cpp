#include "data/io/system_random.h"

#include "tests/catch.h"

using namespace maki;

TEST_CASE("random bits of the system are others at every call, in both halves, and fresh seeds are short") {
  std::uint64_t different = 0;
  for (int i = 0; i < 64; ++i) different |= system_random() ^ system_random();
  REQUIRE(different == ~std::uint64_t{0});  // a bit that never changes: with probability 2^-58
  for (int i = 0; i < 100; ++i) {
    const std::int64_t seed = fresh_seed();
    REQUIRE(seed >= 0);
    REQUIRE(seed < 1'000'000'000);
  }
}
