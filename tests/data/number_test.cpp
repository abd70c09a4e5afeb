// Numbers as people write them.
#include "data/io/number.h"

#include "autograd/core/check.h"
#include "tests/catch.h"

using namespace maki;

TEST_CASE("short numbers have no sign and no zeros in their exponent that say nothing") {
  REQUIRE(short_number(0.25) == "0.25");
  REQUIRE(short_number(1e-5) == "1e-5");
  REQUIRE(short_number(2.5e-12) == "2.5e-12");
  REQUIRE(short_number(1e20) == "1e20");
  REQUIRE(short_number(-3e300) == "-3e300");
}

TEST_CASE("a number beyond its range is told the range, however many digits it has") {
  const auto refusal = [](const std::string& text) {
    try {
      parse_integer("steps", text, 0, 10);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const std::string text : {"11", "-1", "9223372036854775808", "99999999999999999999", "-99999999999999999999"})
    REQUIRE(refusal(text) == "steps: must be between 0 and 10; got " + text);
  for (const std::string text : {"", "-", "+5", "5.0", "1e3", "99999999999999999999x", "99999999999999999999.0"})
    REQUIRE(refusal(text) == "steps: must be a whole number; got " + text);
  REQUIRE(parse_integer("steps", "10", 0, 10) == 10);
}

TEST_CASE("milliseconds are never written with an exponent") {
  REQUIRE(milliseconds_text(0.002756) == "2.76 ms");
  REQUIRE(milliseconds_text(0.9994) == "999 ms");
  REQUIRE(milliseconds_text(0.9996) == "1,000 ms");
  REQUIRE(milliseconds_text(84.375) == "84,375 ms");
}

TEST_CASE("thousands are separated by commas, and nouns agree with their number") {
  REQUIRE(with_separators(0) == "0");
  REQUIRE(with_separators(999) == "999");
  REQUIRE(with_separators(1000) == "1,000");
  REQUIRE(with_separators(-123456) == "-123,456");
  REQUIRE(with_separators(-1234567) == "-1,234,567");
  REQUIRE(pluralize(0, "token") == "0 tokens");
  REQUIRE(pluralize(1, "batch") == "1 batch");
  REQUIRE(pluralize(1200, "batch") == "1,200 batches");
}
