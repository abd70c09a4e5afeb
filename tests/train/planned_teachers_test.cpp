// Plans of runs that train their own teachers first.
#include "tests/catch.h"
#include "tests/train/made_up_machine.h"
#include "train/loop/plan/shapes.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The text of a plan with these teachers: "" or "@own:N", which all of them are.
std::string teacher_of(const Plan& plan) {
  const std::vector<std::string>& all = plan.config.teacher;
  REQUIRE(std::ssize(all) == plan.teachers);
  for (const std::string& teacher : all) REQUIRE(teacher == all.front());
  return all.empty() ? "" : all.front();
}

}  // namespace

TEST_CASE("a plan trains teachers where the text can be read often by each, more of them in more time") {
  std::int64_t last = 0;
  for (const double minutes : {0.2, 1., 3., 10., 20., 60., 600.}) {
    const Plan plan = plan_of(request_for(1'000'000, 60 * minutes));
    INFO(minutes << " minutes: " << plan.teachers << " teachers, " << plan.passes << " passes");
    REQUIRE(plan.teachers >= last);
    last = plan.teachers;
    REQUIRE((plan.teachers > 0) == (minutes >= 20));
    if (plan.teachers == 0) continue;
    REQUIRE(teacher_of(plan) == "@own:" + std::to_string(plan.config.max_steps));
    REQUIRE(plan.passes > 11.9);
    REQUIRE(plan.config.ngram_prior > 0);
    REQUIRE(plan.seconds <= 60 * minutes);
  }
  REQUIRE(last == 3);
}

TEST_CASE("teachers and run share the time, in which a run alone would have as many steps") {
  for (const double minutes : {20., 30., 60.}) {
    const PlanRequest request = request_for(1'000'000, 60 * minutes);
    const Plan plan = plan_of(request);
    INFO(minutes << " minutes, " << plan.teachers << " teachers");
    PlanRequest alone = request;
    alone.may_teach = false;
    alone.seconds = request.seconds / taught_run_time(plan.teachers);
    const Plan part = plan_of(alone);
    REQUIRE(part.config.n_layer == plan.config.n_layer);
    REQUIRE(part.config.n_embd == plan.config.n_embd);
    const auto steps = static_cast<double>(plan.config.max_steps);
    REQUIRE(static_cast<double>(part.config.max_steps) == Approx(steps).epsilon(0.02));
  }
}

TEST_CASE("a plan leaves teachers to the user, and has none where the run cannot train them or nothing is gained") {
  const double hour = 3600;
  PlanRequest request = request_for(1'000'000, hour);
  REQUIRE(plan_of(request).teachers > 0);
  request.may_teach = false;
  REQUIRE(plan_of(request).teachers == 0);
  const Plan fixed = plan_of(with(request_for(1'000'000, hour), {{"teacher", "runs/other"}}));
  REQUIRE(fixed.teachers == 0);
  REQUIRE(fixed.config.teacher == std::vector<std::string>{"runs/other"});
  REQUIRE(plan_of(with(request_for(1'000'000, hour), {{"ngram_prior", "0"}})).teachers == 0);
  for (const std::int64_t characters : {200, 30'000, 200'000'000})  // by heart, very short, hardly read once
    REQUIRE(plan_of(request_for(characters, hour)).teachers == 0);
}
