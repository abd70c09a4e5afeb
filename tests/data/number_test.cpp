// Numbers as people write them.
#include "data/io/number.h"

#include "tests/catch.h"

using namespace maki;

TEST_CASE("short numbers have no sign and no zeros in their exponent that say nothing") {
  REQUIRE(short_number(0.25) == "0.25");
  REQUIRE(short_number(1e-5) == "1e-5");
  REQUIRE(short_number(2.5e-12) == "2.5e-12");
  REQUIRE(short_number(1e20) == "1e20");
  REQUIRE(short_number(-3e300) == "-3e300");
}
