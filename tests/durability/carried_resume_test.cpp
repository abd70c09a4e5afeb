// Runs of the binary whose model carries a memory from one step to the next: interrupted, killed, resumed, returned to
// an earlier checkpoint, evaluated and damaged, they are the same runs.
#include <array>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include "tests/files.h"
#include "tests/train/resumable_run.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A memory of 24 tokens, which is full after the second step.
const Arguments kCarried = kSmall + Arguments{"--model", "transformer-xl", "--memory", "24"};

Arguments training(const std::string& corpus, const std::string& run, int max_steps) {
  return Arguments{"train", corpus, "--out", run, "--max-steps", std::to_string(max_steps)} + kCarried;
}

// The bytes of the checkpoint after `steps` steps of a run that was never stopped.
std::string straight(const TemporaryFolder& folder, const std::string& corpus, int steps, const Arguments& more = {}) {
  const std::string run = folder / fmt::format("straight-{}", steps);
  require_ok(run_maki(training(corpus, run, steps) + more));
  REQUIRE(sections_of(checkpoint(run, steps)).back().first == "memory");
  return read_text(checkpoint(run, steps));
}

std::size_t memory_bytes(const std::string& file) { return sections_of(file).back().second.size(); }

}  // namespace

TEST_CASE("a run with a memory gives the same bytes if it is stopped and resumed after any step, on any threads") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const std::string expected = straight(folder, corpus, 30);
  for (const int k : {0, 1, 2, 7, 29}) {
    INFO("k = " << k);
    const std::string run = folder / fmt::format("cut-{}", k);
    require_ok(run_maki(training(corpus, run, k) + Arguments{"--threads", "3"}));
    require_ok(run_maki({"train", "--resume", run, "--max-steps", "30", "--threads", std::to_string(1 + k % 2)}));
    REQUIRE(read_text(checkpoint(run, 30)) == expected);
  }
  // Without its memory it would be another run: the checkpoint of step 1 with the numbers of another memory.
  const std::string run = folder / "forged";
  require_ok(run_maki(training(corpus, run, 1)));
  Sections sections = sections_of(checkpoint(run, 1));
  std::string& memory = sections.back().second;
  std::fill(memory.begin(), memory.end(), '\0');
  write_sections(checkpoint(run, 1), sections);
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "30"}));
  REQUIRE(read_text(checkpoint(run, 30)) != expected);
}

TEST_CASE("a run with a memory goes on through several files, and returns to an earlier checkpoint") {
  const TemporaryFolder folder;
  const std::string corpus = folder / "texts";
  for (const char* name : {"texts/a.txt", "texts/b.txt", "texts/c.txt"})
    folder.write(name, small_text().substr(0, 700));
  const Arguments often = {"--checkpoint-interval", "3", "--keep-last", "20"};
  const std::string expected = straight(folder, corpus, 30, often);  // more than one epoch
  const std::string run = folder / "straight-30";
  for (const char* step : {"0", "3", "15"}) {
    INFO("back to step " << step);
    const Finished finished = run_maki({"train", "--resume", run, "--checkpoint", step});
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    REQUIRE(read_text(checkpoint(run, 30)) == expected);
  }
  // Rows · layers · width · size of a number, per token.
  const std::size_t per_token = memory_bytes(checkpoint(run, 3)) / 24;
  REQUIRE(per_token % (3 * 3 * 16 * 4) == 0);
  REQUIRE(memory_bytes(checkpoint(run, 0)) == 0);
  REQUIRE(memory_bytes(checkpoint(run, 30)) == 24 * per_token);
  require_ok(run_maki({"inspect", run, "--verify"}));
}

TEST_CASE("a run with a memory that is interrupted, or killed at any moment, ends with the same bytes") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Arguments often = {"--checkpoint-interval", "1", "--keep-last",      "3",  "--log-interval", "1",
                           "--eval-interval",       "5", "--lr-decay-steps", "400"};
  constexpr int kSteps = 120;
  const std::string expected = straight(folder, corpus, kSteps, often);
  int stopped = 0;
  for (int life = 0; life < 30; ++life) {
    const int signal = std::array{SIGKILL, SIGINT, SIGKILL, SIGTERM}[static_cast<std::size_t>(life % 4)];
    RunOptions options;
    options.meanwhile = [&](pid_t process) {
      wait_for_handlers(process);
      usleep(static_cast<useconds_t>(5000 + 3700 * (life % 9)));
      kill(process, signal);
    };
    const bool exists = RunDirectory(run).exists();  // the pointer `last` follows the first checkpoint
    const Finished finished = exists ? run_maki({"train", "--resume", run}, options)
                                     : run_maki(training(corpus, run, kSteps) + often, options);
    INFO(finished.err);
    if (finished.exit_code == 0) break;
    REQUIRE(finished.exit_code == 128 + signal);
    ++stopped;
  }
  REQUIRE(stopped > 3);
  require_ok(run_maki({"train", "--resume", run}));
  REQUIRE(read_text(checkpoint(run, kSteps)) == expected);
  REQUIRE(RunDirectory(run).checkpoints() == RunDirectory(folder / fmt::format("straight-{}", kSteps)).checkpoints());
}

TEST_CASE("the last evaluation of a run with a memory is what maki eval computes, and best what it would choose") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "straight-40";
  straight(folder, corpus, 40);
  std::istringstream lines(read_text(run + "/metrics.jsonl"));
  nlohmann::json last;
  double least = 1e9;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    if (entry["kind"] != "eval") continue;
    last = entry;
    if (entry["step"] > 0) least = std::min(least, entry.value("sampled_val_loss", entry["val_loss"].get<double>()));
  }
  REQUIRE(last["step"] == 40);
  REQUIRE(last["val_share"] == 1);
  REQUIRE(RunDirectory(run).best()->loss == least);
  const auto eval = [&](const Arguments& more) {
    const Finished finished = require_ok(run_maki(Arguments{"eval", run, "--checkpoint", "40", "--json"} + more));
    return nlohmann::json::parse(finished.out)["val_loss"].get<double>();
  };
  REQUIRE(eval({}) == last["val_loss"].get<double>());
  REQUIRE(eval({"--threads", "3"}) == last["val_loss"].get<double>());
  REQUIRE(eval({"--eval-batches", "2"}) == last["sampled_val_loss"].get<double>());
}

TEST_CASE("a damaged memory: exit 4 from inspect --verify, and a run falls back to the checkpoint before it") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments often = {"--checkpoint-interval", "1"};
  const std::string expected = straight(folder, corpus, 6, often);
  const std::string run = folder / "straight-6", file = checkpoint(run, 6);
  const std::vector<std::pair<std::string, std::function<void(Sections&)>>> faults = {
      {"has no section memory", [](Sections& s) { s.pop_back(); }},
      {"section memory must have", [](Sections& s) { s.back().second.resize(s.back().second.size() - 4); }},
      {"section memory must have", [](Sections& s) { s.back().second.clear(); }},
      {"section memory must have", [](Sections& s) { s.back().second += s.back().second; }},
      {"section memory contains", [](Sections& s) { std::memset(s.back().second.data() + 40, 0xff, 4); }},
      {"section memory where", [](Sections& s) { std::swap(s.back(), s[s.size() - 2]); }},
  };
  for (const auto& [words, change] : faults) {
    Sections sections = sections_of(file);
    change(sections);
    write_sections(file, sections);
    const Finished verified = run_maki({"inspect", file, "--verify"});
    INFO(words << ": " << verified.err);
    REQUIRE(verified.exit_code == 4);
    REQUIRE(contains(verified.err, words));
    const Finished resumed = require_ok(run_maki({"train", "--resume", run}));
    REQUIRE(contains(resumed.err, "falling back"));
    REQUIRE(read_text(file) == expected);
  }
}

TEST_CASE("a run that begins with the weights of another begins with an empty memory") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  straight(folder, corpus, 20);
  const Arguments start = {"train",        corpus, "--init-from",      folder / "straight-20",
                           "--batch-size", "2",    "--lr-decay-steps", "100",
                           "--max-steps"};
  require_ok(run_maki(start + Arguments{"8", "--out", folder / "second", "--checkpoint-interval", "4"}));
  REQUIRE(memory_bytes(checkpoint(folder / "second", 0)) == 0);
  require_ok(run_maki(start + Arguments{"4", "--out", folder / "third"}));
  require_ok(run_maki({"train", "--resume", folder / "third", "--max-steps", "8"}));
  REQUIRE(read_text(checkpoint(folder / "third", 8)) == read_text(checkpoint(folder / "second", 8)));
}
