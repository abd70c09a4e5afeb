// A run that is overfitting ends early, at the same step whether or not it was stopped and resumed on the way.
#include "train/run/early_stop.h"

#include "tests/train/captured_run.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr EvalFilter kEveryTenSteps{.interval = 10, .after = 0, .share = 1};

// Evaluations at steps 10, 20, … with the given validation and training losses.
std::vector<EvalPoint> evaluations(const std::vector<std::pair<double, double>>& losses) {
  std::vector<EvalPoint> list;
  for (const auto& [loss, train] : losses)
    list.push_back({10 * static_cast<std::int64_t>(list.size() + 1), loss, 1, train});
  return list;
}

// Random letters: a model can only memorize them.
std::string random_letters() { return seeded_text(400, "abcdefgh", 9); }

Config overfitting_config() {
  Config config = smallest_config();
  config.n_embd = 16;
  config.block_size = 8;
  config.batch_size = 4;
  config.val_fraction = 0.3;
  config.eval_interval = config.checkpoint_interval = 10;
  config.patience = 3;
  config.learning_rate = 0.01;
  config.warmup_steps = 0;
  config.schedule = "constant";
  return config;
}

}  // namespace

TEST_CASE("a run is overfitting if its validation loss has no new best while its training loss falls") {
  const auto since = [](const std::vector<std::pair<double, double>>& losses, std::int64_t patience = 2) {
    return find_overfitting(evaluations(losses), kEveryTenSteps, patience).value_or(-1);
  };
  REQUIRE(since({}) == -1);
  REQUIRE(since({{3, 3}, {2, 2}, {1, 1}}) == -1);
  REQUIRE(since({{1, 3}, {2, 2}}) == -1);
  REQUIRE(since({{1, 3}, {2, 2}, {3, 1}}) == 10);
  REQUIRE(since({{1, 3}, {2, 2}, {3, 1}}, 3) == -1);
  REQUIRE(since({{2, 3}, {1, 2}, {1.5, 1}, {1.5, 0.5}}) == 20);
  REQUIRE(since({{1, 3}, {1, 2}, {1, 1}}) == 10);              // an equal loss is not a new best
  REQUIRE(since({{1, 3}, {2, 3}, {3, 3}}) == -1);              // a plateau
  REQUIRE(since({{1, 3}, {2, 2}, {3, 1}, {0.5, 0.5}}) == -1);  // a new best after all
  REQUIRE(since({{1, 3}, {2, 2}, {0.5, 2}, {3, 1}, {4, 0}}) == 30);
}

TEST_CASE("evaluations at other steps, before a phase and over another share do not count") {
  std::vector<EvalPoint> list = evaluations({{1, 3}, {2, 2}, {3, 1}});
  list.insert(list.begin() + 1, {13, 0.5, 1, 2.5});  // at an interruption
  list.insert(list.begin(), {0, 0.25, 1, 4});        // untrained
  REQUIRE(find_overfitting(list, kEveryTenSteps, 2) == 10);
  REQUIRE_FALSE(find_overfitting(list, {.interval = 10, .after = 10, .share = 1}, 2));
  REQUIRE_FALSE(find_overfitting(list, {.interval = 10, .after = 0, .share = 0.5}, 2));
  REQUIRE_FALSE(find_overfitting(list, {.interval = 20, .after = 0, .share = 1}, 2));
}

TEST_CASE("an overfitting run ends early, reports the best step, and its last evaluation covers the whole text") {
  CapturedRun run(overfitting_config(), random_letters());
  const std::string said = run.go_on(0, 1000);
  INFO(said);
  const std::int64_t end = run.directory.last().value(), best = run.directory.best()->step;
  REQUIRE(end < 1000);
  REQUIRE(best <= end - 30);
  REQUIRE(contains(said, fmt::format("stopped early: the validation loss has not improved since step {}", best)));
  REQUIRE(contains(said, fmt::format("at step {}\n", best)));
  REQUIRE(contains(said, "--no-early-stop"));
  const std::string metrics = read_bytes(run.directory.metrics_file());
  REQUIRE(contains(metrics.substr(metrics.rfind("{\"kind\":\"eval\"")), "\"val_share\":1.0,\"sampled_val_loss\""));

  SECTION("stopped and resumed, it ends at the same step with the same bytes") {
    for (const std::int64_t stop : {10, 37, 40}) {
      CapturedRun resumed(overfitting_config(), random_letters());
      resumed.go_on(0, stop);
      resumed.go_on(stop, 1000);
      INFO("stopped at " << stop);
      REQUIRE(resumed.directory.last() == end);
      REQUIRE(read_bytes(resumed.directory.checkpoint_file(end)) == read_bytes(run.directory.checkpoint_file(end)));
    }
  }
  SECTION("resumed unchanged, it reports how to continue, and with early stopping off it continues") {
    const std::string again = run.go_on(end, 1000);
    INFO(again);
    REQUIRE(contains(again, fmt::format("has not improved since step {}", best)));
    REQUIRE(contains(again, "--no-early-stop"));
    REQUIRE(run.directory.last() == end);
    run.config.early_stop = false;
    const std::string further = run.go_on(end, end + 20);
    REQUIRE(contains(further, "overfitting; the best checkpoint is kept"));
    REQUIRE(run.directory.last() == end + 20);
  }
  SECTION("interrupted during the sample at its end, it writes that when it is resumed") {
    struct Watched : SessionListener {
      void on_overfitting(std::int64_t, bool ends) override { stops = ends; }
      bool stops = false;
    } watched;
    Config config = overfitting_config();
    config.sample_interval = end;
    config.max_steps = 1000;
    CapturedRun again(config, random_letters());
    TextTrainer trainer(config, again.data);
    const auto stop = [&] { return watched.stops; };
    REQUIRE(Session(config, trainer, again.directory, watched, {.stop = stop}).train() == SessionEnd::interrupted);
    REQUIRE(trainer.steps() == end);
    REQUIRE_FALSE(MetricsFile(again.directory.metrics_file(), end).has_sample(end));
    REQUIRE(contains(again.go_on(end, 1000), fmt::format("at step {}\n", best)));
    REQUIRE(MetricsFile(again.directory.metrics_file(), end).has_sample(end));
    REQUIRE(again.directory.last() == end);
  }
  SECTION("a new phase of the schedule begins at the step where it ended") {
    run.config.phases = {Phase{end, end + 20, 0.001, 0.0001, 0}};
    run.go_on(end, end + 20);
    REQUIRE(run.directory.last() == end + 20);
  }
}
