#include "autograd/core/cache_size.h"

#include "tests/catch.h"

TEST_CASE("the level-2 cache has a plausible size") {
  REQUIRE(maki::level2_cache_bytes() >= 4 << 10);
  REQUIRE(maki::level2_cache_bytes() <= std::int64_t{1} << 30);
}
