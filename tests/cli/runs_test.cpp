// What a run stands for: one process trains it, on the text that it says; whoever made its directory or changes its
// files meanwhile gets a sentence.
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/require_refused.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/run_directory.h"

using namespace maki::tests;

namespace {

const Arguments kTinyRun = {"--n-layer",    "1", "--n-head",    "2", "--n-embd",     "16", "--block-size", "16",
                            "--batch-size", "4", "--max-steps", "5", "--no-counting"};

// Runs maki with each of these arguments, all at the same time.
std::vector<Finished> run_together(const std::vector<Arguments>& all, const RunOptions& options) {
  std::vector<Finished> finished(all.size());
  const std::function<void(std::size_t)> start = [&](std::size_t i) {
    if (i == all.size()) return;
    RunOptions own = options;
    own.meanwhile = [&](pid_t) { start(i + 1); };
    finished[i] = run_maki(all[i], own);
  };
  start(0);
  return finished;
}

}  // namespace

TEST_CASE("of several starts with one --out exactly one trains, and without --out all do") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const RunOptions there{.working_directory = folder.path()};
  for (int round = 0; round < 3; ++round) {
    const std::string out = "same-" + std::to_string(round);
    std::filesystem::create_directories(folder / (round == 2 ? out : "other"));
    int trained = 0;
    for (const Finished& finished :
         run_together(std::vector(3, Arguments{"train", corpus, "--threads", "1", "--out", out} + kTinyRun), there)) {
      INFO(finished.err);
      REQUIRE((finished.exit_code == 0 || finished.exit_code == 2));
      trained += finished.exit_code == 0 ? 1 : 0;
    }
    REQUIRE(trained == 1);
    require_ok(run_maki({"inspect", out, "--verify"}, there));
  }
  for (const Finished& finished :
       run_together(std::vector(4, Arguments{"train", corpus, "--threads", "1"} + kTinyRun), there))
    require_ok(finished);
  for (const char* const name : {"corpus-1", "corpus-2", "corpus-3", "corpus-4"})
    require_ok(run_maki({"inspect", folder / "runs/" + name, "--verify"}));
  REQUIRE_FALSE(std::filesystem::exists(folder / "runs/corpus-5"));
}

TEST_CASE(
    "a token file that is emptied while it is trained on: a sentence, exit code 3, and the run can be continued") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), tokens = folder / "tokens", run = folder / "run";
  require_ok(run_maki({"prepare", corpus, "--out", tokens}));
  const std::string whole = read_bytes(tokens);
  RunOptions options;
  options.meanwhile = [&](pid_t process) {
    while (text_so_far(run + "/metrics.jsonl").empty() && !has_ended(process)) usleep(1000);
    REQUIRE(truncate(tokens.c_str(), 0) == 0);
  };
  const Finished finished = run_maki(
      Arguments{"train", tokens, "--out", run} + kTinyRun + Arguments{"--max-steps", "10000000", "--log-interval", "1"},
      options);
  require_refused(finished, 3, {tokens + ": must stay as it is", "is saved", "maki train --resume " + run});
  require_ok(run_maki({"inspect", run, "--verify"}));
  require_refused(run_maki({"train", "--resume", run}), 3, {tokens});
  write_bytes(tokens, whole);
  const std::int64_t step = maki::RunDirectory(run).last().value();
  const std::string more = std::to_string(step + 2);
  REQUIRE_THAT(require_ok(run_maki({"train", "--resume", run, "--max-steps", more})).err,
               ContainsSubstring("resuming after step " + std::to_string(step)));
}

TEST_CASE("a number of threads in the environment that no machine has is refused before anything is made") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  for (const char* const number : {"40000", "100000"}) {
    const RunOptions many{.environment = {std::string("OMP_NUM_THREADS=") + number}};
    const Arguments arguments = Arguments{"train", corpus, "--out", run} + kTinyRun;
    require_refused(run_maki(arguments, many), 2, {"OMP_NUM_THREADS must be between 1 and 1024", number});
    REQUIRE_FALSE(std::filesystem::exists(run));
    require_ok(run_maki(arguments + Arguments{"--threads", "1", "--out", folder / number}, many));
  }
}

TEST_CASE("initial weights whose loss is not a number are refused before anything is saved") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", std::string(300, 'a') + std::string(300, 'b') + std::string(300, 'c'));
  Sections sections = sections_of(write_smallest(folder / "small.maki"));
  std::string& values = section(sections, "values");
  for (std::size_t at = 0; at + sizeof(float) <= values.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, values.data() + at, sizeof value);
    if (value != 0) value = std::copysign(3e38F, value);  // padding stays 0
    std::memcpy(values.data() + at, &value, sizeof value);
  }
  write_sections(folder / "huge.maki", sections);
  const auto tuned = [&](const char* weights) {
    return run_maki({"train", text, "--init-from", folder / weights, "--out", folder / "run", "--max-steps", "2",
                     "--batch-size", "2", "--no-counting"});
  };
  require_refused(tuned("huge.maki"), 5, {"init_from: ", "not finite", "choose another checkpoint"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "run"));
  require_ok(tuned("small.maki"));
}

TEST_CASE("a run without the pointer last is shown and verified") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run} + kTinyRun));
  std::filesystem::remove(run + "/checkpoints/last");
  REQUIRE_THAT(require_ok(run_maki({"inspect", run})).out, ContainsSubstring("step         5\n"));
  REQUIRE_THAT(require_ok(run_maki({"inspect", run, "--verify"})).out, ContainsSubstring("can be resumed"));
}

TEST_CASE("the text of a run is found again behind a link and \"..\"") {
  const TemporaryFolder folder;
  folder.write("far/corpus.txt", small_text());
  std::filesystem::create_directory(folder / "far/away");
  std::filesystem::create_directory_symlink(folder / "far/away", folder / "link");
  const RunOptions there{.working_directory = folder.path()};
  require_ok(run_maki(Arguments{"train", "link/../corpus.txt", "--out", "link/../run"} + kTinyRun, there));
  require_ok(run_maki({"train", "--resume", folder / "far/run", "--max-steps", "6"}));
}

TEST_CASE("a return to an earlier checkpoint that was interrupted is completed by the next resume") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run} + kTinyRun +
                      Arguments{"--checkpoint-interval", "1", "--keep-last", "9"}));
  // As it is left when the latest checkpoint of three has been moved.
  std::filesystem::create_directory(run + "/returning-to-2");
  std::filesystem::rename(checkpoint(run, 5), run + "/returning-to-2/step-00000005.maki");
  maki::RunDirectory(run).set_last(2);
  const std::string said = require_ok(run_maki({"train", "--resume", run, "--max-steps", "3"})).err;
  REQUIRE_THAT(said, ContainsSubstring(run + "/abandoned-1") && ContainsSubstring("resuming after step 2\n"));
  for (const int step : {3, 4, 5})
    REQUIRE(std::filesystem::exists(run + "/abandoned-1/" +
                                    std::filesystem::path(checkpoint(run, step)).filename().string()));
  REQUIRE(maki::RunDirectory(run).checkpoints().back() == 3);
}
