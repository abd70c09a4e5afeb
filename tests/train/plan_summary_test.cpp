// How a plan is shown to users.
#include "tests/catch.h"
#include "train/app/plan_run.h"

using namespace maki;

namespace {

using PlanText = std::vector<std::string>;

Plan some_plan() {
  Plan plan;
  plan.config.n_layer = 1;
  plan.config.n_embd = 64;
  plan.config.tokenizer = "char";
  plan.config.max_steps = 2000;
  plan.seconds = 61;
  return plan;
}

}  // namespace

TEST_CASE("a plan is shown in one line: the model, what it learns from, and how long") {
  Plan plan = some_plan();
  REQUIRE(plan_summary(plan) == PlanText{"plan   1 layer of width 64 on characters: 2,000 steps in about 1m 01s"});
  plan.config.n_layer = 2;
  plan.config.tokenizer = "bpe";
  plan.config.vocab_size = 4096;
  plan.vocabulary = 1024;  // the text has no more
  plan.config.ngram_prior = 6;
  plan.config.max_steps = 1;
  plan.config.teacher = {"@counts"};
  plan.enough = "more would not help";
  REQUIRE(plan_summary(plan) ==
          PlanText{"plan   2 layers of width 64 on 1,024 byte pairs and a count of n-grams: 1 step, "
                   "taught by counts of many contexts, in about 1m 01s, because more would not help"});
  const auto taught_by = [&](const std::vector<std::string>& teachers) {
    plan.config.teacher = teachers;
    const std::string line = plan_summary(plan).front();
    return line.substr(line.find("1 step"), line.find(" in about") - line.find("1 step"));
  };
  REQUIRE(taught_by({"runs/a", "@own:10"}) == "1 step, taught by 2 networks,");
  REQUIRE(taught_by({"@counts", "runs/a"}) == "1 step, taught by 1 network and counts of many contexts,");
}

TEST_CASE("a plan says how far below counting alone its loss will be, where that is known") {
  const auto expected = [](double loss, bool by_heart = false) {
    Plan plan = some_plan();
    plan.expected_loss = loss;
    plan.by_heart = by_heart;
    const std::string line = plan_summary(plan).front(), before = "1m 01s";
    return line.substr(line.find(before) + before.size());
  };
  REQUIRE(expected(0).empty());
  REQUIRE(expected(0.75) == "; a loss about 25% below that of counting alone");
  REQUIRE(expected(0.75, /*by_heart=*/true).empty());
  REQUIRE(expected(0.9925) == "; a loss about 1% below that of counting alone");
  for (const double none : {0.996, 1.0, 1.5})
    REQUIRE(expected(none) == "; a loss of about what counting alone reaches");
}

TEST_CASE("a plan for a machine that is kept busy says so") {
  Plan plan = some_plan();
  plan.step = {.seconds = 0.375, .idle_seconds = 0.25};
  REQUIRE(plan_summary(plan).size() == 1);  // times vary that much
  plan.step.seconds = 0.5;
  const PlanText lines = plan_summary(plan);
  REQUIRE(lines.size() == 2);
  REQUIRE(lines[1] == "note: other programs keep this machine busy: a step takes 500 ms instead of 250 ms");
}

TEST_CASE("the choices of a plan are shown with their values and reasons, and last what they take") {
  Plan plan = some_plan();
  plan.choices.push_back({.fields = {"n_layer", "n_embd"}, .reason = "it fits into the time"});
  plan.choices.push_back({.fields = {"tokenizer"}, .reason = "all are frequent"});
  plan.passes = 1.5;
  plan.memory_bytes = 320'000'000;
  REQUIRE(plan_lines(plan) == PlanText{"plan   n_layer 1, n_embd 64: it fits into the time",
                                       "plan   tokenizer 'char': all are frequent",
                                       "plan   1m 01s, 1.5 passes over the training data, about 320 MB of memory"});
}
