// Plans of runs that learn from counts of many contexts.
#include "data/mixing/held_out_expectations.h"
#include "tests/catch.h"
#include "tests/threads.h"
#include "tests/train/made_up_machine.h"

using namespace maki;
using namespace maki::tests;

namespace {

bool has_teacher(const Plan& plan) { return plan.config.teacher == std::vector<std::string>{"@counts"}; }

}  // namespace

TEST_CASE("a plan has a teacher that counts where that takes at most half of the time") {
  const ThreadsScope scope(2);
  bool before = false;
  for (const double minutes : {0.2, 1., 3., 10., 20., 60., 600.}) {
    const PlanRequest request = request_for(1'000'000, 60 * minutes);
    const Plan plan = plan_of(request), alone = plan_of(with(request, {{"teacher", ""}}));
    INFO(minutes << " minutes: " << plan.passes << " passes, alone " << alone.passes);
    REQUIRE(has_teacher(plan) == (minutes >= 3));
    REQUIRE((!before || has_teacher(plan)));
    before = has_teacher(plan);
    REQUIRE(plan.seconds <= 60 * minutes);
    if (!before) continue;
    REQUIRE(plan.config.ngram_prior > 0);
    REQUIRE(plan.passes > 1.8);
    // Counting takes time; in ten hours there is enough for all passes that help, and a taught network may have more.
    REQUIRE(plan.passes <= (minutes < 600 ? alone.passes : 40.01));
  }
}

TEST_CASE("a text that counts teach can be read more often, so that a larger network pays in the same time") {
  const ThreadsScope scope(2);
  PlanRequest request = request_for(1'115'394, 45 * 60);
  request.text.tokenizer = "bpe";
  request.text.tokens = 575'809;
  request.text.vocabulary = 512;
  constexpr double kTwoCores = 1.2e11;
  const Plan taught = plan_of(request, kTwoCores), alone = plan_of(with(request, {{"teacher", ""}}), kTwoCores);
  REQUIRE(has_teacher(taught));
  REQUIRE(taught.config.n_embd == 192);
  REQUIRE(alone.config.n_embd < taught.config.n_embd);
  REQUIRE(taught.expected_loss < alone.expected_loss);
}

TEST_CASE("more than four threads do not count faster, so that a plan for many has a teacher in no shorter time") {
  constexpr double kFast = 1e12;
  const auto seconds_on = [](std::int64_t threads) {
    return HeldOutExpectations::seconds_to_make(900'000, 65, threads);
  };
  REQUIRE(seconds_on(2) == Approx(0.5 * seconds_on(1)));
  REQUIRE(seconds_on(16) == seconds_on(4));
  const ThreadsScope scope(16);
  REQUIRE_FALSE(has_teacher(plan_of(request_for(1'000'000, 1.9 * seconds_on(16)), kFast)));
  REQUIRE(has_teacher(plan_of(request_for(1'000'000, 2.1 * seconds_on(16)), kFast)));
}

TEST_CASE("a plan has no teacher where the time that counting leaves is too short for two passes") {
  const ThreadsScope scope(2);
  const PlanRequest request = request_for(1'000'000, 60);
  REQUIRE_FALSE(has_teacher(plan_of(request)));
  REQUIRE(has_teacher(plan_of(request, 3 * kSpeed)));
}

TEST_CASE("the time that the teachers of the user take is planned, and their context is enough for the run") {
  const PlanRequest request = with(request_for(1'000'000, 60), {{"teacher", ""}});
  const Plan alone = plan_of(request);
  const Plan own = plan_of(with(request, {{"teacher", "@own:500"}})),
             more = plan_of(with(request, {{"teacher", "@own:800"}}));
  REQUIRE(own.config.n_embd == alone.config.n_embd);
  REQUIRE(own.seconds > 0.97 * 60);
  REQUIRE(own.seconds <= 60);
  // 300 steps fewer, each of which would have taken a third longer than those of a teacher.
  REQUIRE(static_cast<double>(own.config.max_steps - more.config.max_steps) == Approx(300 / 1.35).epsilon(0.1));
  REQUIRE(plan_of(with(request, {{"teacher", "@counts"}})).config.max_steps < 9 * alone.config.max_steps / 10);
  REQUIRE_THROWS_WITH(plan_of(with(request, {{"teacher", "@own:100000000"}})),
                      ContainsSubstring("minutes: the teachers alone take about"));
  PlanRequest near = request;
  near.most_context = 48;
  REQUIRE(plan_of(near).config.block_size == 48);
  near.most_context = 100'000;
  REQUIRE(plan_of(near).config.block_size == alone.config.block_size);
}

TEST_CASE("a plan leaves teachers to the user, and has none where nothing is gained") {
  const double hour = 3600;
  PlanRequest request = request_for(1'000'000, hour);
  request.memory = 64'000'000'000;
  const Plan taught = plan_of(request);
  REQUIRE(has_teacher(taught));
  REQUIRE(taught.memory_bytes > plan_of(with(request, {{"teacher", ""}})).memory_bytes);
  request.memory = taught.memory_bytes;
  REQUIRE(has_teacher(plan_of(request)));
  request.memory = taught.memory_bytes - 1;
  REQUIRE(plan_of(request).memory_bytes < taught.memory_bytes);
  request.memory = 300'000'000;
  REQUIRE(*request.memory < HeldOutExpectations::bytes_to_make(300'000, 1));
  REQUIRE_FALSE(has_teacher(plan_of(request)));
  const Plan fixed = plan_of(with(request_for(1'000'000, hour), {{"teacher", "runs/other"}}));
  REQUIRE(fixed.config.teacher == std::vector<std::string>{"runs/other"});
  REQUIRE_FALSE(has_teacher(plan_of(with(request_for(1'000'000, hour), {{"ngram_prior", "0"}}))));
  for (const std::int64_t characters : {200, 30'000, 200'000'000})  // by heart, very short, hardly read once
    REQUIRE_FALSE(has_teacher(plan_of(request_for(characters, hour))));
}

TEST_CASE("a teacher that the user names allows no more passes than the plan's own") {
  const ThreadsScope scope(2);
  const PlanRequest request = request_for(1'000'000, 36'000);
  const auto named = [&](std::map<std::string, std::string> given) {
    given["teacher"] = "@counts";
    return plan_of(with(request, given));
  };
  REQUIRE(named({}).config.max_steps == plan_of(request).config.max_steps);
  // Without a prior, plans have no teacher.
  REQUIRE(named(kNoPrior).passes <= 20.01);
}
