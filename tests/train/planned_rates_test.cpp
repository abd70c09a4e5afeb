// The learning rates of plans.
#include "tests/catch.h"
#include "tests/train/made_up_machine.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a plan's learning rate is lower for a wider network") {
  const auto rate = [](const char* width) {
    return plan_of(with(request_for(1'000'000, 600), {{"n_embd", width}, {"n_head", "4"}})).config.learning_rate;
  };
  REQUIRE(rate("32") == 8e-3);  // the highest
  REQUIRE(rate("64") == 8e-3);
  REQUIRE(rate("128") == 4e-3);
  REQUIRE(rate("256") == 2e-3);
}
