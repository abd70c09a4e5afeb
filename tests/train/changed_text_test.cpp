// A token file that changes while a run trains on it: the steps before are saved as if it had not changed, and the
// error names the file.
#include <fcntl.h>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "tests/train/prepared.h"
#include "tests/train/small_checkpoint.h"
#include "tests/train/small_data.h"
#include "tests/train/text_trainer.h"
#include "train/loop/session.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Calls `act` after a step, or after an evaluation.
struct Acting final : SessionListener {
  Acting(std::int64_t at, bool after_evaluation, std::function<void()> act)
      : step(at), evaluation(after_evaluation), action(std::move(act)) {}
  void on_step(const StepReport& report, double) override {
    if (!evaluation && report.step == step) action();
  }
  void on_eval(const EvalReport& report, bool) override {
    if (evaluation && report.step == step) action();
  }

  std::int64_t step;
  bool evaluation;
  std::function<void()> action;
};

Config config_of_run(std::int64_t checkpoint_interval) {
  Config config = smallest_config();
  config.max_steps = 6;
  config.eval_interval = 3;
  config.checkpoint_interval = checkpoint_interval;
  config.keep_last = 10;
  config.counting = false;
  return config;
}

Dataset data_in(const std::string& path, const Config& config) {
  const Corpus corpus = *prepared_corpus({path});
  return make_dataset(corpus, corpus.prepared->facts.val_fraction, config.block_size, config.tokenizer);
}

// Last modified long ago, so that a change now has another time whatever the clock's resolution is.
void make_old(const std::string& path) {
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

// The message of the error that ends the run, empty without one.
std::string train_on(const std::string& tokens, const RunDirectory& run, std::int64_t checkpoint_interval,
                     Acting& acting) {
  const Config config = config_of_run(checkpoint_interval);
  const Dataset data = data_in(tokens, config);
  TextTrainer trainer(config, data);
  run.create();
  Session session(config, trainer, run, acting);
  return error_message<CorpusError>([&] { session.train(); });
}

}  // namespace

TEST_CASE("a token file that shrinks or changes while it is trained on ends the run, and what was learned is saved") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", seeded_text(3000, "abcd"));
  prepare({text}, folder / "tokens");
  const std::string whole = read_bytes(folder / "tokens");
  const RunDirectory undisturbed(folder / "undisturbed");
  Acting nothing(0, false, [] {});
  make_old(folder / "tokens");
  REQUIRE(train_on(folder / "tokens", undisturbed, 1, nothing).empty());

  const std::vector<std::function<void()>> changes = {
      [&] { REQUIRE(truncate((folder / "tokens").c_str(), 0) == 0); },
      [&] {
        const int file = open((folder / "tokens").c_str(), O_WRONLY);
        const std::string other(whole.size() - 256, '\3');
        REQUIRE(pwrite(file, other.data(), other.size(), 256) == static_cast<ssize_t>(other.size()));
        close(file);
      }};
  int number = 0;
  for (const auto& change : changes) {
    for (const auto& [step, after_evaluation] : {std::pair{1, false}, std::pair{3, false}, std::pair{3, true}}) {
      write_bytes(folder / "tokens", whole);
      make_old(folder / "tokens");
      const RunDirectory run(folder / std::to_string(number++));
      Acting acting(step, after_evaluation, change);
      const std::string said = train_on(folder / "tokens", run, 100, acting);
      INFO(said);
      REQUIRE(contains(said, folder / "tokens" + ": must stay as it is while it is used"));
      REQUIRE(run.last() == step);
      REQUIRE(run.checkpoints() == std::vector<std::int64_t>{0, step});
      REQUIRE(read_bytes(run.checkpoint_file(step)) == read_bytes(undisturbed.checkpoint_file(step)));
    }
  }
}
