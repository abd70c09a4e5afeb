// train --teacher @own:N: runs that train their teachers first.
#include <csignal>
#include <filesystem>
#include <fmt/format.h>

#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"
#include "train/run/run_directory.h"

using namespace maki::tests;

namespace {

// A run of 30 steps whose two teachers are trained for 25 and 20 steps before, and what it ends with.
struct OwnTeachers {
  std::string train(const std::string& out, const Arguments& more = {}) const {
    require_ok(run_maki(command(out) + more));
    return end_of(out);
  }
  Arguments command(const std::string& out) const {
    return Arguments{"train", corpus,      "--out",   folder / out, "--max-steps",
                     "30",    "--teacher", "@own:25", "--teacher",  "@own:20"} +
           options;
  }
  std::string end_of(const std::string& out) const { return read_bytes(checkpoint(folder / out, 30)); }

  TemporaryFolder folder;
  std::string corpus = folder.write("corpus.txt", small_text());
  Arguments options = kSmall + Arguments{"--ngram-prior", "3", "--seed", "7", "--no-counting"};
};

// Interrupts a run once the teacher has a checkpoint of this step.
RunOptions interrupting(const std::string& teacher, int step) {
  RunOptions options;
  options.meanwhile = [file = checkpoint(teacher, step)](pid_t process) {
    while (access(file.c_str(), F_OK) != 0 && !has_ended(process)) usleep(50);
    kill(process, SIGINT);
  };
  return options;
}

}  // namespace

TEST_CASE("own teachers are the runs that one would train by hand, with the next seeds") {
  const OwnTeachers all;
  const std::string own = all.train("own");
  Arguments both;
  for (const int number : {1, 2}) {
    const std::string steps = number == 1 ? "25" : "20", out = all.folder / std::to_string(number);
    require_ok(
        run_maki(Arguments{"train", all.corpus, "--out", out} + all.options +
                 Arguments{"--max-steps", steps, "--lr-decay-steps", steps, "--seed", std::to_string(7 + number)}));
    const std::string teacher = all.folder / "own/teacher-" + std::to_string(number);
    REQUIRE(read_bytes(checkpoint(teacher, std::stoi(steps))) == read_bytes(checkpoint(out, std::stoi(steps))));
    REQUIRE_THAT(read_text(teacher + "/config.toml"), ContainsSubstring("\nout = '" + teacher + "' ") &&
                                                          ContainsSubstring("\nmax_steps = " + steps + " ") &&
                                                          ContainsSubstring(fmt::format("\nseed = {} ", 7 + number)));
    both = both + Arguments{"--teacher", out};
  }
  require_ok(
      run_maki(Arguments{"train", all.corpus, "--out", all.folder / "hand", "--max-steps", "30"} + all.options + both));
  REQUIRE(all.end_of("hand") == own);
}

TEST_CASE("a run with own teachers is repeated by its config.toml, on any threads") {
  const OwnTeachers all;
  const std::string own = all.train("own");
  REQUIRE(all.train("threads", {"--threads", "3"}) == own);
  require_ok(run_maki({"train", "--config", all.folder / "own/config.toml", "--out", all.folder / "again"}));
  REQUIRE(all.end_of("again") == own);
}

TEST_CASE("a run that is interrupted while a teacher is trained is resumed there: exit 130") {
  const OwnTeachers all;
  const std::string own = all.train("own");
  int interrupted = 0;
  for (const auto& [number, step] : {std::pair{"1", 0}, std::pair{"1", 20}, std::pair{"2", 0}}) {
    const std::string out = std::string("stopped") + number + "-" + std::to_string(step);
    const std::string run = all.folder / out;
    const Finished stopped = run_maki(all.command(out), interrupting(run + "/teacher-" + number, step));
    if (stopped.exit_code == 130) {
      ++interrupted;
      REQUIRE_THAT(stopped.err, ContainsSubstring("continue with:  maki train --resume " + run + "\n"));
      require_ok(run_maki({"train", "--resume", run}));
    }
    REQUIRE(all.end_of(out) == own);
    const Finished finished = require_ok(run_maki({"train", "--resume", run}));
    REQUIRE_THAT(finished.err, !ContainsSubstring("first a teacher"));
    require_refused(run_maki({"train", "--resume", run, "--teacher", "@own:26", "--teacher", "@own:20"}), 2,
                    {"teacher: is fixed for this run at @own:25; got @own:26"});
  }
  REQUIRE(interrupted > 0);
}

TEST_CASE("a run that is interrupted while its first teacher is trained keeps what was planned") {
  const OwnTeachers all;
  const std::string run = all.folder / "run";
  const Finished stopped = run_maki({"train", all.corpus, "--out", run, "--minutes", "1m", "--max-steps", "3",
                                     "--teacher", "@own:25", "--n-layer", "1", "--n-embd", "16", "--no-counting"},
                                    interrupting(run + "/teacher-1", 0));
  if (stopped.exit_code == 130) require_ok(run_maki({"train", "--resume", run}));
  const std::string metrics = read_text(run + "/metrics.jsonl"), plan = R"({"kind":"plan","step":0,)";
  REQUIRE(metrics.starts_with(plan));
  REQUIRE(metrics.find(plan, 1) == std::string::npos);
}

// Of random characters a network learns little but their frequencies, so that early steps have the lowest losses.
TEST_CASE("where a teacher is interrupted does not change what it teaches") {
  OwnTeachers all;
  std::string noise;
  std::uint64_t state = 1;
  for (int i = 0; i < 1500; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    noise += "abcdefgh "[(state >> 33) % 9];
  }
  all.corpus = all.folder.write("noise.txt", noise);
  all.options =
      all.options +
      Arguments{
          "--eval-interval", "2000", "--checkpoint-interval", "20",  "--learning-rate", "0.01",     "--n-embd", "32",
          "--dropout",       "0",    "--val-fraction",        "0.3", "--teacher",       "@own:1000"};
  const std::string own = all.train("own"), run = all.folder / "stopped";
  if (run_maki(all.command("stopped"), interrupting(run + "/teacher-3", 20)).exit_code == 130)
    require_ok(run_maki({"train", "--resume", run}));
  REQUIRE((all.end_of("stopped") == own));
}

TEST_CASE("teachers that a run cannot train are refused: exit 2") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments train = Arguments{"train", corpus, "--out", folder / "run", "--max-steps", "2"} + kSmall;
  require_refused(run_maki(train + Arguments{"--teacher", "@own:0"}), 2, {"teacher", "between 1 and"});
  require_refused(run_maki(train + Arguments{"--teacher", "@mine:2"}), 2, {"@own:STEPS", "./@mine:2"});
  require_refused(run_maki(train + Arguments{"--teacher", "@own:2", "--model", "transformer-xl", "--memory", "16"}), 2,
                  {"remembers what it has read"});
  require_ok(run_maki(Arguments{"train", corpus, "--out", folder / "first", "--max-steps", "2"} + kSmall));
  require_refused(run_maki(Arguments{"train", corpus, "--init-from", folder / "first", "--out", folder / "run",
                                     "--max-steps", "2", "--teacher", "@own:2"}),
                  2, {"--init-from"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_CASE("a teacher that does not fit the run any more is moved aside, and trained anew") {
  const OwnTeachers all;
  const std::string run = all.folder / "run";
  const Arguments train = Arguments{"train", all.corpus, "--max-steps", "4"} + all.options;
  require_ok(run_maki(train + Arguments{"--out", run, "--teacher", "@own:4"}));
  const Finished resumed = require_ok(run_maki({"train", "--resume", run, "--checkpoint", "0", "--teacher", "@own:6"}));
  REQUIRE_THAT(resumed.err, ContainsSubstring("moved to " + run + "/abandoned-"));
  require_ok(run_maki(train + Arguments{"--out", all.folder / "other", "--teacher", "@own:6"}));
  REQUIRE(read_bytes(checkpoint(run, 4)) == read_bytes(checkpoint(all.folder / "other", 4)));
}

TEST_CASE("a resume that asks for another teacher is recorded before that teacher is trained") {
  const OwnTeachers all;
  const std::string run = all.folder / "run";
  const Arguments train = Arguments{"train", all.corpus, "--max-steps", "4"} + all.options;
  require_ok(run_maki(train + Arguments{"--out", run, "--teacher", "@own:4"}));
  // What config.toml cannot store is refused before a checkpoint is moved.
  const std::string odd = all.folder.write("caf\xe9.txt", small_text());
  require_refused(run_maki({"train", "--resume", run, odd, "--checkpoint", "0", "--teacher", "@own:25"}), 3,
                  {"must be valid UTF-8"});
  REQUIRE(std::filesystem::exists(checkpoint(run, 4)));
  run_maki({"train", "--resume", run, "--checkpoint", "0", "--teacher", "@own:25"},
           interrupting(run + "/teacher-1", 20));
  REQUIRE_THAT(read_bytes(run + "/config.toml"), ContainsSubstring("'@own:25'"));
  require_ok(run_maki({"train", "--resume", run}));
  require_ok(run_maki(train + Arguments{"--out", all.folder / "other", "--teacher", "@own:25"}));
  REQUIRE(read_bytes(checkpoint(run, 4)) == read_bytes(checkpoint(all.folder / "other", 4)));
}

TEST_CASE("a run whose own teacher was moved or trained further is resumed with the checkpoint that taught") {
  const OwnTeachers all;
  const std::string run = all.folder / "run", teacher = run + "/teacher-1", whole = all.folder / "whole";
  const Arguments train = Arguments{"train", all.corpus, "--teacher", "@own:4", "--lr-decay-steps", "4"} + kSmall;
  require_ok(run_maki(train + Arguments{"--out", whole, "--max-steps", "12"}));
  require_ok(run_maki(train + Arguments{"--out", run, "--max-steps", "4"}));
  std::filesystem::copy(checkpoint(teacher, 4), all.folder / "taught.maki");
  const Arguments resume = {"train", "--resume", run, "--max-steps"};
  require_ok(run_maki({"train", "--resume", teacher, "--max-steps", "20"}));
  require_refused(run_maki(resume + Arguments{"8"}), 2,
                  {"has other values than teacher 1", "name the same checkpoints"});
  require_refused(run_maki(resume + Arguments{"8", "--teacher", checkpoint(teacher, 20)}), 2, {"has other values"});
  std::filesystem::remove_all(teacher);
  require_refused(run_maki(resume + Arguments{"8", "--teacher", "@own:20"}), 2, {"fixed for this run at @own:4"});
  require_ok(run_maki(resume + Arguments{"8", "--teacher", all.folder / "taught.maki"}));
  require_ok(run_maki(resume + Arguments{"12"}));
  REQUIRE(read_bytes(checkpoint(run, 12)) == read_bytes(checkpoint(whole, 12)));
}
