// Which checkpoint is the best of a run, also of one that is resumed with other files than it had.
#include "data/io/error.h"
#include "tests/train/session_run.h"
#include "tests/train/text_trainer.h"
#include "train/loop/best_checkpoint.h"
#include "train/loop/session.h"
#include "train/run/values_by_name.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a pointer best to a step after the resumed one is reported, and the best up to that step replaces it") {
  SessionRun run;
  REQUIRE(contains(run.go_on(0, 40), "done: 40 steps"));
  REQUIRE(run.directory.checkpoints() == std::vector<std::int64_t>{0, 10, 20, 30, 40});
  REQUIRE(run.directory.best().has_value());
  run.measured({{10, 0.5}, {20, 0.75}, {30, 0.25}});
  run.directory.set_best({30, 0.25});
  const std::string said = run.go_on(20, 20);
  INFO(said);
  REQUIRE(contains(said, "best points to step 30, which this run has not reached; the best is now step 10"));
  REQUIRE(run.directory.best()->step == 10);
  REQUIRE(run.directory.best()->loss == 0.5);
}

TEST_CASE("a damaged or missing best checkpoint is reported, and the best that can be read replaces it") {
  for (const bool gone : {false, true}) {
    SessionRun run;
    run.go_on(0, 30);
    if (gone) {
      std::filesystem::remove(run.directory.checkpoint_file(20));
    } else {
      // Changes a byte of a moment, which opening the file does not detect.
      std::string bytes = read_bytes(run.directory.checkpoint_file(20));
      bytes[bytes.size() - 100] ^= 1;
      write_bytes(run.directory.checkpoint_file(20), bytes);
    }
    run.measured({{0, 0.75}, {10, 0.5}, {20, 0.25}, {30, 0.625}});
    run.directory.set_best({20, 0.25});
    const std::string said = run.go_on(30, 30);
    INFO(said);
    REQUIRE(contains(said, "best points to step 20, whose checkpoint is missing or damaged; the best is now step 10"));
    REQUIRE(run.directory.best()->step == 10);
    REQUIRE(run.directory.best()->loss == 0.5);
  }
}

TEST_CASE("the best checkpoint is measured again with its own weights, and training continues with those of the last") {
  SessionRun run;
  run.config.eval_batches = 3;  // of seven
  run.go_on(0, 40);
  const std::string straight = read_bytes(run.directory.checkpoint_file(40));
  std::filesystem::remove(run.directory.checkpoint_file(40));
  run.measured({{10, 0.25}, {20, 0.5}, {30, 0.75}});  // over the whole text
  run.directory.set_best({10, 0.25});
  TextTrainer trainer(run.config, run.data);
  const auto loss_of = [&](std::int64_t step) {
    load_values(ContainerReader(run.directory.checkpoint_file(step)), trainer.store());
    return trainer.validation_loss().value();
  };
  REQUIRE(std::abs(loss_of(10) - loss_of(30)) > 0.001);
  REQUIRE(contains(run.go_on(30, 40), fmt::format("measured the best checkpoint (step 10) again, over the 42.9% of the "
                                                  "validation text that evaluations cover from here on: {:.4f}\n",
                                                  loss_of(10))));
  REQUIRE(read_bytes(run.directory.checkpoint_file(40)) == straight);
}

TEST_CASE("a damaged checkpoint that is measured leaves the trainer its own values") {
  SessionRun run;
  run.go_on(0, 20);
  TextTrainer trainer(run.config, run.data);
  trainer.restore(VerifiedCheckpoint(run.directory, run.directory.checkpoint_file(20)));
  const std::string own = hash_of_values(trainer.store());
  const std::string file = run.directory.checkpoint_file(10), bytes = read_bytes(file);
  BestCheckpoint best(
      trainer, run.directory, /*first=*/1, [](std::int64_t) { return true; }, [](const std::string&) {});
  REQUIRE(best.measure(10, /*whole=*/true, {}).has_value());
  REQUIRE(hash_of_values(trainer.store()) == own);
  int damaged = 0;
  for (std::size_t at = bytes.size() / 8; at < bytes.size(); at += bytes.size() / 8) {
    std::string changed = bytes;
    changed[at] ^= 1;
    write_bytes(file, changed);
    try {
      best.measure(10, /*whole=*/true, {});
    } catch (const CheckpointError&) {
      ++damaged;
    }
    REQUIRE(hash_of_values(trainer.store()) == own);
  }
  REQUIRE(damaged > 0);
}

TEST_CASE("a best checkpoint that cannot be read stops the session, and neither file nor pointer changes") {
  SessionRun run;
  run.go_on(0, 30);
  run.measured({{0, 0.75}, {10, 0.5}, {20, 0.25}, {30, 0.625}});
  run.directory.set_best({20, 0.25});
  run.config.keep_last = 1;
  run.config.max_steps = 40;
  const std::string best = run.directory.checkpoint_file(20), away = best + ".away";
  std::filesystem::rename(best, away);
  std::filesystem::create_symlink(best, best);  // cannot be opened: too many levels of symbolic links
  REQUIRE(contains(error_message<CheckpointError>([&] { run.go_on(30, 40); }), best));
  REQUIRE(run.directory.best()->step == 20);
  REQUIRE(run.directory.checkpoints() == std::vector<std::int64_t>{0, 10, 20, 30});
  std::filesystem::rename(away, best);
  const std::string said = run.go_on(30, 30);
  INFO(said);
  REQUIRE_FALSE(contains(said, "best points to"));
  REQUIRE(run.directory.best()->step == 20);
}

TEST_CASE("if no evaluated checkpoint can be read there is no best, until the next evaluation") {
  SessionRun run;
  run.go_on(0, 20);
  run.measured({});
  run.directory.set_best({5, 0.125});
  const std::string said = run.go_on(10, 20);
  INFO(said);
  REQUIRE(contains(said, "best points to step 5, whose checkpoint is missing or damaged; there is no best now"));
  REQUIRE(run.directory.best()->step >= 10);
  // Nothing is left to measure, so the pointer is removed.
  write_bytes(run.directory.metrics_file(), "{\"kind\":\"eval\",\"step\":20,\"train_loss\":1.0}\n");
  run.directory.set_best({5, 0.125});
  REQUIRE(contains(run.go_on(20, 20), "there is no best now"));
  REQUIRE_FALSE(run.directory.best().has_value());
}

TEST_CASE("an evaluation counts if it was recorded before the pointer best was moved, without a report") {
  SessionRun run;
  run.go_on(0, 20);
  run.measured({{10, 0.5}, {20, 0.25}});
  run.directory.set_best({10, 0.5});
  const std::string said = run.go_on(20, 20);
  INFO(said);
  REQUIRE_FALSE(contains(said, "best points to"));
  REQUIRE(run.directory.best()->step == 20);
  REQUIRE(run.directory.best()->loss == 0.25);
}

TEST_CASE("an evaluation that equals the best so far does not move best") {
  SessionRun run;
  run.config.learning_rate = run.config.min_lr = 0;  // every evaluation measures the same weights
  run.go_on(0, 10);
  const BestPointer first = run.directory.best().value();
  run.go_on(10, 40);
  REQUIRE(run.directory.best()->step == first.step);
  REQUIRE(run.directory.best()->loss == first.loss);
}

TEST_CASE("step 0 of random weights is never the best, whatever the files contain") {
  SessionRun run;
  run.config.learning_rate = run.config.min_lr = 0;  // no step is better than the first
  run.go_on(0, 0);
  REQUIRE_FALSE(run.directory.best().has_value());
  run.directory.set_best({0, 0.5});
  run.measured({{0, 0.5}});
  const std::string said = run.go_on(0, 20);
  INFO(said);
  REQUIRE(run.directory.best()->step == 10);
  run.measured({{0, 0.25}, {10, 0.75}, {20, 0.5}});
  run.directory.set_best({0, 0.25});
  REQUIRE(contains(run.go_on(20, 20), "best points to step 0, whose weights are untrained; the best is now step 20"));
  REQUIRE(run.directory.best()->step == 20);
}

TEST_CASE("step 0 is the best of a run that does not improve given weights or a count, and the last line says so") {
  for (const bool with_prior : {false, true}) {
    INFO(with_prior);
    Config config = tens();
    config.learning_rate = config.min_lr = 0;  // no step is better than the first
    if (with_prior) {
      config.ngram_prior = 3;
    } else {
      config.init_from = std::string(32, '0');
    }
    SessionRun run(config);
    const std::string said = run.go_on(0, 30);
    INFO(said);
    REQUIRE(run.directory.best()->step == 0);
    REQUIRE(file_exists(run.directory.checkpoint_file(0)));
    REQUIRE_FALSE(contains(said, "the best so far"));
    REQUIRE(contains(said, "training did not help"));
    // A resumed run finds it again, also without the pointer.
    std::filesystem::remove(run.directory.path() + "/best");
    run.go_on(30, 40);
    REQUIRE(run.directory.best()->step == 0);
  }
}
