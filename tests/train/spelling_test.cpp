// How messages of the libraries name settings.
#include "train/app/spelling.h"

#include "tests/catch.h"

using namespace maki;

TEST_CASE("a setting in a message is printed as an option, or as the key of the file that set it") {
  REQUIRE(spelled("lower `block_size`, or use `val_fraction` 0") == "lower --block-size, or use --val-fraction 0");
  spell_as_keys({"block_size"});
  REQUIRE(spelled("lower `block_size`, or use `val_fraction` 0") == "lower block_size, or use --val-fraction 0");
  spell_as_keys({});
}

TEST_CASE("backquotes that enclose no name of a setting stay in a message") {
  REQUIRE(spelled("a`b.txt: has `two words` and ``") == "a`b.txt: has `two words` and ``");
  REQUIRE(spelled("a` `out`") == "a` --out");
  REQUIRE(spelled("") == "");
}
