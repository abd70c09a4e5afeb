#include "autograd/core/nearest.h"

#include <vector>

#include "tests/catch.h"

using namespace maki;

TEST_CASE("nearest_name returns a name that may have been meant, or none") {
  const std::vector<std::string> verbs = {"train", "generate", "eval", "inspect", "gradcheck", "bench"};
  REQUIRE(nearest_name("trian", verbs) == "train");
  REQUIRE(nearest_name("gen", verbs) == "generate");
  REQUIRE(nearest_name("evaluate", verbs) == "eval");
  REQUIRE(nearest_name("grad-check", verbs) == "gradcheck");
  for (const char* far : {"x", "resume", "help", "explode", "run", ""}) REQUIRE(nearest_name(far, verbs).empty());
  const std::vector<std::string> options = {"n-layer", "learning-rate", "max-steps", "dropout"};
  REQUIRE(nearest_name("layers", options) == "n-layer");
  REQUIRE(nearest_name("learning-rte", options) == "learning-rate");
  REQUIRE(nearest_name("max", options) == "max-steps");
  for (const char* far : {"epochs", "lr", "gpu", "hidden-size"}) REQUIRE(nearest_name(far, options).empty());
  REQUIRE(nearest_hint("dropuot", options) == "; the nearest is dropout");
  REQUIRE(nearest_hint("epochs", options).empty());
  REQUIRE(nearest_name("a", {}).empty());
  // Words too long to match any name are rejected by their length. Comparing this one would take minutes.
  REQUIRE(nearest_name(std::string(100'000'000, 'x'), options).empty());
  REQUIRE(nearest_name("learning-rate" + std::string(1000, 'x'), options).empty());
}
