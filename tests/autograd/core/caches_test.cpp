#include "autograd/core/caches.h"

#include "tests/catch.h"

TEST_CASE("the caches of a core have plausible sizes") {
  const maki::Caches& known = maki::caches();
  REQUIRE(known.level1 >= 4 << 10);
  REQUIRE(known.level2 >= 4 << 10);
  REQUIRE(known.level2 <= std::int64_t{1} << 30);
}
