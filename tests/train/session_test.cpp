// A session that takes up a run: what counts as its best, and which files it trusts.
#include "train/session.h"

#include <cerrno>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/train/small_checkpoint.h"
#include "train/error.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A run of 40 steps, evaluated and saved every ten, all checkpoints kept.
struct Run {
  Run() {
    config = smallest_config();
    config.val_fraction = 0.25;
    config.max_steps = 40;
    config.eval_interval = config.checkpoint_interval = 10;
    config.keep_last = 100;
    config.learning_rate = config.min_lr = 0.05;
    config.warmup_steps = 0;
    Corpus corpus;
    for (int i = 0; i < 20; ++i) corpus.text += "abc";
    corpus.characters = 60;
    corpus.hash = "0123456789abcdef0123456789abcdef";
    data = make_dataset(corpus, config.val_fraction, config.block_size, config.tokenizer);
    directory.create();
  }

  /// Goes on from a step, as a resume does; what was said on the way.
  std::string go_on(std::int64_t step, std::int64_t max_steps, FileSystem& fs = posix()) {
    config.max_steps = max_steps;
    Trainer trainer(config, data);
    if (step > 0) {
      const ContainerReader file(directory.checkpoint_file(step));
      load_values(file, trainer.store());
      load_optimizer(file, step, trainer.optimizer());
      trainer.set_steps(step);
    }
    const std::string log = folder / "log";
    std::fflush(stderr);
    const int before = dup(STDERR_FILENO);
    REQUIRE(std::freopen(log.c_str(), "w", stderr) != nullptr);
    int code = -1;
    std::exception_ptr thrown;
    try {
      code = Session(config, data, trainer, RunDirectory(directory.path(), fs)).train();
    } catch (...) {
      thrown = std::current_exception();
    }
    std::fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    if (thrown) std::rethrow_exception(thrown);
    REQUIRE(code == 0);
    return get(log);
  }

  /// As if these had been the losses.
  void measured(const std::vector<Best>& losses) {
    std::filesystem::remove(directory.metrics_file());
    Metrics metrics(directory.metrics_file(), 0);
    for (const Best& best : losses) metrics.eval({.step = best.step, .train_loss = 1, .val_loss = best.loss});
  }

  Folder folder;
  Config config;
  Dataset data;
  RunDirectory directory{folder / "run"};
};

}  // namespace

TEST_CASE("a best from a future that is undone is said aloud, and the best up to here takes its place") {
  Run run;
  REQUIRE(holds(run.go_on(0, 40), "done: 40 steps"));
  REQUIRE(run.directory.checkpoints() == std::vector<std::int64_t>{0, 10, 20, 30, 40});
  REQUIRE(run.directory.best().has_value());
  run.measured({{10, 0.5}, {20, 0.75}, {30, 0.25}});
  run.directory.set_best({30, 0.25});
  const std::string said = run.go_on(20, 20);
  INFO(said);
  REQUIRE(holds(said, "best names step 30, which this run has not reached; the best is now step 10"));
  REQUIRE(run.directory.best()->step == 10);
  REQUIRE(run.directory.best()->loss == 0.5);
}

TEST_CASE("a best whose checkpoint is damaged or gone is said aloud, and the best that can be read takes its place") {
  for (const bool gone : {false, true}) {
    Run run;
    run.go_on(0, 30);
    if (gone) {
      std::filesystem::remove(run.directory.checkpoint_file(20));
    } else {
      // A byte of a moment: who only opens the file sees nothing wrong.
      std::string bytes = get(run.directory.checkpoint_file(20));
      bytes[bytes.size() - 100] ^= 1;
      put(run.directory.checkpoint_file(20), bytes);
    }
    run.measured({{0, 0.75}, {10, 0.5}, {20, 0.25}, {30, 0.625}});
    run.directory.set_best({20, 0.25});
    const std::string said = run.go_on(30, 30);
    INFO(said);
    REQUIRE(holds(said, "best names step 20, whose checkpoint is missing or damaged; the best is now step 10"));
    REQUIRE(run.directory.best()->step == 10);
    REQUIRE(run.directory.best()->loss == 0.5);
  }
}

TEST_CASE("a best whose checkpoint cannot be read stops the session, and the file and the pointer stay") {
  Run run;
  run.go_on(0, 30);
  run.measured({{0, 0.75}, {10, 0.5}, {20, 0.25}, {30, 0.625}});
  run.directory.set_best({20, 0.25});
  run.config.keep_last = 1;
  run.config.max_steps = 40;
  const std::string best = run.directory.checkpoint_file(20), away = best + ".away";
  std::filesystem::rename(best, away);
  std::filesystem::create_symlink(best, best);  // cannot be opened: too many levels of symbolic links
  REQUIRE(holds(sentence<CheckpointError>([&] { run.go_on(30, 40); }), best));
  REQUIRE(run.directory.best()->step == 20);
  REQUIRE(run.directory.checkpoints() == std::vector<std::int64_t>{0, 10, 20, 30});
  std::filesystem::rename(away, best);
  const std::string said = run.go_on(30, 30);
  INFO(said);
  REQUIRE_FALSE(holds(said, "best names"));
  REQUIRE(run.directory.best()->step == 20);
}

TEST_CASE("an old checkpoint that cannot be deleted is reported once, and training goes on") {
  struct Sticky : Unsynced {
    int unlink(const std::string& path) override {
      if (!holds(path, "step-00000010")) return FileSystem::unlink(path);
      errno = EPERM;
      return -1;
    }
  } sticky;
  Run run;
  run.config.keep_last = 1;
  const std::string said = run.go_on(0, 40, sticky);
  INFO(said);
  const std::string note = "step-00000010.maki: cannot be deleted";
  REQUIRE(holds(said, note));
  REQUIRE_FALSE(holds(said.substr(said.find(note) + 1), note));
  REQUIRE(std::filesystem::exists(run.directory.checkpoint_file(10)));
  REQUIRE(std::filesystem::exists(run.directory.checkpoint_file(40)));
}

TEST_CASE("with no evaluation left whose checkpoint can be read there is no best, and the next one is") {
  Run run;
  run.go_on(0, 20);
  run.measured({});
  run.directory.set_best({5, 0.125});
  const std::string said = run.go_on(10, 20);
  INFO(said);
  REQUIRE(holds(said, "best names step 5, whose checkpoint is missing or damaged; there is none now"));
  REQUIRE(run.directory.best()->step >= 10);
  // Nothing left to measure: the pointer goes.
  put(run.directory.metrics_file(), "{\"kind\":\"eval\",\"step\":20,\"train_loss\":1.0}\n");
  run.directory.set_best({5, 0.125});
  REQUIRE(holds(run.go_on(20, 20), "there is none now"));
  REQUIRE_FALSE(run.directory.best().has_value());
}

TEST_CASE("an evaluation that was written down before best was moved counts, and is no news") {
  Run run;
  run.go_on(0, 20);
  run.measured({{10, 0.5}, {20, 0.25}});
  run.directory.set_best({10, 0.5});
  const std::string said = run.go_on(20, 20);
  INFO(said);
  REQUIRE_FALSE(holds(said, "best names"));
  REQUIRE(run.directory.best()->step == 20);
  REQUIRE(run.directory.best()->loss == 0.25);
}

TEST_CASE("an evaluation is written down when all that follows from it is done, and not before") {
  struct NoBest : FileSystem {
    int rename(const std::string& from, const std::string& to) override {
      if (!to.ends_with("/best")) return FileSystem::rename(from, to);
      errno = EIO;
      return -1;
    }
  } no_best;
  Run run;
  Trainer trainer(run.config, run.data);
  const RunDirectory failing(run.directory.path(), no_best);
  const std::string said = sentence<CheckpointError>([&] { Session(run.config, run.data, trainer, failing).train(); });
  REQUIRE(holds(said, "checkpoints/best"));
  REQUIRE_FALSE(holds(get(run.directory.metrics_file()), "eval"));
  run.go_on(0, 10);
  REQUIRE(holds(get(run.directory.metrics_file()), "{\"kind\":\"eval\",\"step\":0,"));
  REQUIRE(run.directory.best().has_value());
}

TEST_CASE("a file of this step that cannot be gone on from, or is another run's, is written anew") {
  Run run;
  run.go_on(0, 20);
  const std::string path = run.directory.checkpoint_file(20), good = get(path);
  Config other = run.config;
  other.seed = 7;
  Sections sections = sections_of(path);
  section(sections, "tensors")[1] = 'v';
  const Folder elsewhere;
  for (const std::string& bad :
       {std::string("torn"), good.substr(0, good.size() - 1), get(write_sections(elsewhere / "forged.maki", sections)),
        get(write_smallest(
            elsewhere / "other.maki", [](CheckpointState& s) { s.step = 20; }, other)),
        get(run.directory.checkpoint_file(10))}) {
    put(path, bad);
    run.go_on(10, 20);
    REQUIRE(get(path) == good);
  }
}

TEST_CASE("a file that is there and good is not written again") {
  Run run;
  run.go_on(0, 20);
  const auto before = std::filesystem::last_write_time(run.directory.checkpoint_file(20));
  std::filesystem::last_write_time(run.directory.checkpoint_file(20), before - std::chrono::hours(1));
  run.go_on(10, 20);
  REQUIRE(std::filesystem::last_write_time(run.directory.checkpoint_file(20)) == before - std::chrono::hours(1));
}

TEST_CASE("a new run begins with nothing measured, whatever lies in its directory") {
  Run run;
  run.measured({{0, 0.5}});
  run.go_on(0, 10);
  REQUIRE_FALSE(holds(get(run.directory.metrics_file()), ":0.5}"));
}

TEST_CASE("an evaluation that is only as good as the best so far leaves best where it is") {
  Run run;
  run.config.learning_rate = run.config.min_lr = 0;  // every evaluation measures the same weights
  run.go_on(0, 10);
  const Best first = run.directory.best().value();
  run.go_on(10, 40);
  REQUIRE(run.directory.best()->step == first.step);
  REQUIRE(run.directory.best()->loss == first.loss);
}
