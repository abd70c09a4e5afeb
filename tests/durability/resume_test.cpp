// The binary resumes runs whose files have been damaged or removed: it falls back, reports that, and ends with the same
// bytes.
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

#include "tests/files.h"
#include "tests/metrics_lines.h"
#include "tests/train/resumable_run.h"
#include "tests/train/small_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr int kResumedSteps = 6;

// A finished run, and the bytes of its last checkpoint.
struct Done : ResumableRun {
  explicit Done(const TemporaryFolder& folder) : ResumableRun(folder, "run", kResumedSteps) {
    require_ok(go_on());
    expected = read_text(checkpoint(path, kResumedSteps));
    REQUIRE(expected.size() > 10000);
  }
  // Resumes the run, requires that it ends as before, and returns what it reported.
  std::string again() const {
    const Finished finished = go_on();
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    REQUIRE(read_text(checkpoint(path, kResumedSteps)) == expected);
    return finished.err;
  }
  // Changes one section of the last checkpoint and keeps every hash valid.
  void forge(const std::string& name, const std::function<void(std::string&)>& change) const {
    Sections sections = sections_of(checkpoint(path, kResumedSteps));
    change(section(sections, name));
    write_sections(checkpoint(path, kResumedSteps), sections);
  }
  std::string expected;
};

}  // namespace

TEST_CASE("if the last checkpoint is intact but cannot be resumed, the run falls back to the one before it") {
  const TemporaryFolder folder;
  const Done run(folder);
  const std::string file = checkpoint(run.path, kResumedSteps);
  const std::vector<std::pair<std::string, std::function<void(std::string&)>>> forgeries = {
      {"tensors", [](std::string& bytes) { bytes[1] = 'v'; }},
      {"tokenizer", [](std::string& bytes) { bytes.pop_back(); }},
      {"tokenizer", [](std::string& bytes) { bytes[0] = 'M'; }},
      {"config", [](std::string& bytes) { bytes += "# more\n"; }},
      {"config", [](std::string& bytes) { bytes.replace(bytes.find("n_embd = 16"), 11, "n_embd = 32"); }},
      {"exp_avg", [](std::string& bytes) { bytes.resize(bytes.size() / 2); }},
  };
  for (const auto& [name, change] : forgeries) {
    run.forge(name, change);
    require_ok(run_maki({"inspect", checkpoint(run.path, kResumedSteps - 1), "--verify"}));
    const std::string said = run.again();
    INFO(name << ": " << said);
    REQUIRE(said.starts_with(file));
    REQUIRE(contains(said, "falling back"));
    REQUIRE(contains(said, "resuming after step 5"));
  }
}

TEST_CASE("a damaged tokenizer in a checkpoint is exit 4 with the path, in every verb") {
  const TemporaryFolder folder;
  const Done run(folder);
  run.forge("tokenizer", [](std::string& bytes) { bytes.pop_back(); });
  const std::string file = checkpoint(run.path, kResumedSteps);
  for (const Arguments& arguments : {Arguments{"generate", file}, Arguments{"eval", file, run.corpus},
                                     Arguments{"inspect", file}, Arguments{"inspect", file, "--verify"}}) {
    const Finished finished = run_maki(arguments);
    INFO(arguments[0] << ": " << finished.err);
    REQUIRE(finished.exit_code == 4);
    REQUIRE(contains(finished.err, file));
  }
  // With no other checkpoint to fall back to, the run ends the same way.
  for (int step = 0; step < kResumedSteps; ++step) std::filesystem::remove(checkpoint(run.path, step));
  const Finished finished = run.go_on();
  INFO(finished.err);
  REQUIRE(finished.exit_code == 4);
  REQUIRE(contains(finished.err, file));
}

TEST_CASE("a pointer last to a missing file is reported, and the newest intact checkpoint is used") {
  const TemporaryFolder folder;
  const Done run(folder);
  std::filesystem::remove(checkpoint(run.path, kResumedSteps));
  const std::string said = run.again();
  INFO(said);
  REQUIRE(contains(said, "checkpoints/last: points to step-00000006.maki, which is missing"));
  REQUIRE(contains(said, "resuming after step 5"));
}

TEST_CASE("a checkpoint that cannot be read: exit 4, nothing changes, and once it can be read the run resumes") {
  const TemporaryFolder folder;
  const Done run(folder);
  run.forge("tensors", [](std::string& bytes) { bytes[1] = 'v'; });  // damaged: the one before it must be used
  for (const int step : {kResumedSteps, kResumedSteps - 1}) {
    const std::string file = checkpoint(run.path, step), away = folder / "away";
    std::filesystem::rename(file, away);
    std::filesystem::create_symlink(file, file);  // cannot be opened: too many levels of symbolic links
    const auto state = [&] {
      return std::make_tuple(file_names(run.path + "/checkpoints"), read_text(run.path + "/checkpoints/best"),
                             read_text(run.path + "/metrics.jsonl"));
    };
    const auto before = state();
    const Finished finished = run.go_on();
    INFO(finished.err);
    REQUIRE(finished.exit_code == 4);
    REQUIRE(contains(finished.err, file + ": cannot be opened"));
    REQUIRE(state() == before);
    std::filesystem::rename(away, file);
  }
  REQUIRE(contains(run.again(), "resuming after step 5"));
}

TEST_CASE("a run that ended between its last save and its last evaluation evaluates when it is resumed") {
  const TemporaryFolder folder;
  const Done run(folder);
  const std::string metrics = read_text(run.path + "/metrics.jsonl");
  std::filesystem::resize_file(run.path + "/metrics.jsonl", metrics.rfind("{\"kind\":\"eval\""));
  std::filesystem::remove(run.path + "/checkpoints/best");
  run.again();
  REQUIRE(reproducible_lines(read_text(run.path + "/metrics.jsonl")) == reproducible_lines(metrics));
  REQUIRE(std::filesystem::exists(run.path + "/checkpoints/best"));
  REQUIRE(contains(run.again(), "has reached step 6"));
}

TEST_CASE("paths that are not UTF-8 are rejected before anything is written: of a corpus exit 3, of --out exit 2") {
  const TemporaryFolder folder;
  const std::string odd = folder.write("caf\xe9.txt", small_text()), plain = folder.write("plain.txt", small_text());
  const std::string run = folder / "run";
  const auto refused = [&](int code, const Arguments& arguments, const RunOptions& options = {}) {
    const Finished finished = run_maki(arguments + kSmall + Arguments{"--max-steps", "2"}, options);
    INFO(finished.err);
    REQUIRE(finished.exit_code == code);
    REQUIRE(contains(finished.err, "UTF-8"));
    REQUIRE_FALSE(std::filesystem::exists(run));
  };
  refused(3, {"train", odd, "--out", run});
  refused(2, {"train", plain, "--out", folder / "r\xfcn"});
  // The given name is valid UTF-8, the folder that contains it is not.
  std::filesystem::create_directory(folder / "d\xe9p");
  std::filesystem::copy_file(plain, folder / "d\xe9p/plain.txt");
  refused(3, {"train", "plain.txt", "--out", run}, {.working_directory = folder / "d\xe9p"});
  // Its text can still be given on standard input.
  require_ok(run_maki(Arguments{"train", "-", "--out", run} + kSmall + Arguments{"--max-steps", "2"},
                      {.input = small_text()}));
}

TEST_CASE("a run returns to an earlier checkpoint: the same end, and what came after it is kept") {
  const TemporaryFolder folder;
  const Done run(folder);
  const std::string metrics = read_text(run.path + "/metrics.jsonl");
  const Finished finished = run_maki({"train", "--resume", run.path, "--checkpoint", "5"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  REQUIRE(contains(finished.err, "resuming after step 5"));
  REQUIRE(contains(finished.err, run.path + "/abandoned-1"));
  REQUIRE(read_text(checkpoint(run.path, kResumedSteps)) == run.expected);
  REQUIRE(read_text(run.path + "/abandoned-1/step-00000006.maki") == run.expected);
  REQUIRE(read_text(run.path + "/abandoned-1/metrics.jsonl") == metrics);
  // Once more, with more steps to do. The new folder does not replace the first.
  require_ok(run_maki({"train", "--resume", run.path, "--checkpoint", "5", "--max-steps", "7"}));
  REQUIRE(read_text(checkpoint(run.path, kResumedSteps)) == run.expected);
  REQUIRE(read_text(run.path + "/abandoned-2/step-00000006.maki") == run.expected);
  require_ok(run_maki({"generate", run.path + "/abandoned-1/step-00000006.maki", "--max-tokens", "3"}));
  for (const auto& [which, words] : std::vector<std::pair<std::string, std::string>>{
           {"3", "no checkpoint of step 3"}, {"worst", "worst"}, {"last", "max_steps"}, {"7", "max_steps"}}) {
    const Finished refused = run_maki({"train", "--resume", run.path, "--checkpoint", which});
    INFO(refused.err);
    REQUIRE(refused.exit_code == 2);
    REQUIRE(contains(refused.err, words));
  }
  REQUIRE(run_maki({"train", run.corpus, "--checkpoint", "5"}).exit_code == 2);
  // What config.toml cannot store is refused before a checkpoint is moved.
  const std::string odd = folder.write("caf\xe9.txt", small_text());
  const Finished refused = run_maki({"train", "--resume", run.path, odd, "--checkpoint", "6", "--max-steps", "8"});
  INFO(refused.err);
  REQUIRE(refused.exit_code == 3);
  REQUIRE(contains(refused.err, "must be valid UTF-8"));
  REQUIRE_FALSE(std::filesystem::exists(run.path + "/abandoned-3"));
  REQUIRE(std::filesystem::exists(checkpoint(run.path, 7)));
}

TEST_CASE("a state that is not finite is never saved, and the last good one is named") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", corpus = folder.write("corpus.txt", small_text());
  const Finished finished = run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "20"} + kSmall +
                                     Arguments{"--optimizer", "sgd", "--learning-rate", "1000", "--min-lr", "1000",
                                               "--grad-clip", "0", "--keep-last", "1", "--val-fraction", "0",
                                               "--checkpoint-interval", "1", "--warmup-steps", "0"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 5);
  const std::vector<std::int64_t> left = RunDirectory(run).checkpoints();
  REQUIRE(left.size() == 1);
  REQUIRE(contains(finished.err, fmt::format("the last good checkpoint is step {}", left[0])));
  REQUIRE(contains(finished.err,
                   "start a new run with a lower --learning-rate, or a lower --grad-clip above 0, or return"));
  REQUIRE(contains(finished.err, fmt::format("--resume {} --checkpoint {}", run, left[0])));
  require_ok(run_maki({"generate", run, "--max-tokens", "3"}));
}
