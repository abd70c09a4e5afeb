// Exact runs, as a user sees them: the checkpoint has the same bytes, however the run was split, threaded, logged or
// interrupted.
#include <array>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/cli/small_run.h"
#include "tests/metrics_lines.h"

using namespace maki::tests;

namespace {

// The bytes of the checkpoint after 60 steps of a run that was never stopped.
std::string straight(const TemporaryFolder& folder, const std::string& corpus, const Arguments& more = {}) {
  require_ok(run_maki(Arguments{"train", corpus, "--out", folder / "straight", "--max-steps", "60"} + kSmall + more));
  const std::string bytes = read_text(checkpoint(folder / "straight", 60));
  REQUIRE(bytes.size() > 10000);
  return bytes;
}

// What a run reported of its steps, and the texts that it generated, without what a clock has measured.
std::string losses_and_samples(const std::string& run) {
  std::string kept;
  std::istringstream lines(measured(read_text(run + "/metrics.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("{\"kind\":\"train\"") || line.starts_with("{\"kind\":\"sample\"")) kept += line + "\n";
  }
  return kept;
}

}  // namespace

TEST_CASE("60 steps give the bytes of k steps and a resume for the other 60 - k") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments reports = {"--log-interval", "1", "--sample-interval", "7"};
  const std::string expected = straight(folder, corpus, reports), lines = losses_and_samples(folder / "straight");
  REQUIRE(std::ranges::count(lines, '\n') == 60 + 60 / 7);
  for (const int k : {0, 1, 7, 29, 30, 31, 59}) {
    INFO("k = " << k);
    const std::string run = folder / fmt::format("cut-{}", k);
    require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", std::to_string(k)} + kSmall + reports));
    require_ok(run_maki({"train", "--resume", run, "--max-steps", "60"}));
    REQUIRE(read_text(checkpoint(run, 60)) == expected);
    REQUIRE(losses_and_samples(run) == lines);
  }
}

TEST_CASE("a run with Muon has the same bytes when it is cut in two, at any number of threads") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments muon = {"--optimizer", "muon"};
  const std::string expected = straight(folder, corpus, muon), run = folder / "cut";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "23", "--threads", "3"} + kSmall + muon));
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "60", "--threads", "2"}));
  REQUIRE(read_text(checkpoint(run, 60)) == expected);
}

TEST_CASE("a run with a prior has the same bytes when it is cut in two, at any number of threads") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const char* const model : {"gpt", "linear", "transformer-xl"}) {
    INFO(model);
    const Arguments prior = {"--model", model, "--ngram-prior", "4"};
    const std::string name = model, whole = folder / (name + "-whole"), run = folder / (name + "-cut");
    const auto train = [&](const std::string& out, const char* steps, const char* threads) {
      require_ok(run_maki(Arguments{"train", corpus, "--out", out, "--max-steps", steps, "--threads", threads} +
                          kSmall + prior));
    };
    train(whole, "40", "1");
    train(run, "17", "3");
    require_ok(run_maki({"train", "--resume", run, "--max-steps", "40", "--threads", "2"}));
    REQUIRE(read_text(checkpoint(run, 40)) == read_text(checkpoint(whole, 40)));
    require_ok(run_maki({"inspect", run, "--verify"}));
    require_ok(run_maki({"gradcheck", run}));
    require_ok(run_maki({"generate", run, "--max-tokens", "30"}));
    require_ok(run_maki({"eval", run, "--adapt"}));
    const std::string next = folder / (name + "-next");
    require_ok(run_maki(Arguments{"train", corpus, "--init-from", run, "--out", next, "--max-steps", "2"}));
    const auto refused = run_maki({"export", run, "--format", "hf", "--out", folder / (name + "-exported")});
    REQUIRE(refused.exit_code != 0);
    REQUIRE_THAT(refused.err, ContainsSubstring(name == "gpt" ? "ngram_prior" : "model"));
  }
}

TEST_CASE("a run with every extra of a block has the same bytes when it is cut in two, at any number of threads") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const char* const model : {"gpt", "linear"}) {
    const Arguments extras = {
        "--model",      model,          "--qk-norm",      "--conv-width", "4",         "--zero-projections",
        "--activation", "relu_squared", "--ngram-orders", "2,3",          "--n-layer", "2"};
    const std::string name = model, expected_run = folder / (name + "-straight"), run = folder / (name + "-cut");
    const auto train = [&](const std::string& out, const char* steps, const char* threads) {
      require_ok(run_maki(Arguments{"train", corpus, "--out", out, "--max-steps", steps, "--threads", threads} +
                          kSmall + extras));
    };
    train(expected_run, "40", "1");
    train(run, "17", "3");
    require_ok(run_maki({"train", "--resume", run, "--max-steps", "40", "--threads", "2"}));
    REQUIRE(read_text(checkpoint(run, 40)) == read_text(checkpoint(expected_run, 40)));
    require_ok(run_maki({"gradcheck", run}));
    require_ok(run_maki({"generate", run, "--max-tokens", "30"}));
  }
}

TEST_CASE("a run whose heads share keys has the same bytes when it is cut in two, at any number of threads") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), whole = folder / "whole", run = folder / "cut";
  const auto train = [&](const std::string& out, const char* steps, const char* threads) {
    const Arguments options = {
        "--out", out,           "--max-steps", steps,       "--threads",     threads, "--n-kv-head",
        "1",     "--positions", "rotary",      "--qk-norm", "--ngram-prior", "2"};
    return require_ok(run_maki(Arguments{"train", corpus} + kSmall + options));
  };
  REQUIRE_THAT(train(whole, "30", "1").err, ContainsSubstring("2 heads (1 of keys and values), width 16"));
  train(run, "13", "3");
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "30", "--threads", "2"}));
  REQUIRE(read_text(checkpoint(run, 30)) == read_text(checkpoint(whole, 30)));
  require_ok(run_maki({"gradcheck", run}));
  require_ok(run_maki({"attend", run, "--prompt", "a", "--json"}));
  const std::string tuned = folder / "tuned";
  require_ok(run_maki({"train", corpus, "--init-from", run, "--out", tuned, "--max-steps", "2", "--lora-rank", "2"}));
  require_ok(run_maki({"generate", tuned, "--max-tokens", "30"}));
}

TEST_CASE("twenty restarts of three steps give the bytes of one run") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments whole = {"--eval-batches", "0"};  // all evaluations cover the whole text, as the last one always does
  const std::string expected = straight(folder, corpus, whole), run = folder / "restarted";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "3"} + kSmall + whole));
  for (int steps = 6; steps <= 60; steps += 3) {
    require_ok(run_maki({"train", "--resume", run, "--max-steps", std::to_string(steps)}));
  }
  REQUIRE(read_text(checkpoint(run, 60)) == expected);
  // Evaluations at steps where both runs evaluated are the same, too. (Every restart also evaluates at its end.)
  const auto evaluations = [](const std::string& path) {
    std::string kept;
    std::istringstream lines(read_text(path));
    for (std::string line; std::getline(lines, line);) {
      const bool common = line.find("0,\"train_loss\"") != std::string::npos;  // steps 0, 10, 20, …
      if (common) kept += line + "\n";
    }
    return kept;
  };
  REQUIRE(evaluations(run + "/metrics.jsonl") == evaluations(folder / "straight/metrics.jsonl"));
}

TEST_CASE("the number of threads changes no byte in 100 steps") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  std::string expected;
  for (const char* threads : {"1", "2", "3", "4", "8", "16"}) {
    const std::string run = folder / (std::string("threads-") + threads);
    require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--threads", threads} + kSmall +
                        Arguments{"--max-steps", "100"}));
    const std::string bytes = read_text(checkpoint(run, 100));
    REQUIRE(bytes.size() > 10000);
    if (expected.empty()) expected = bytes;
    REQUIRE(bytes == expected);
  }
}

TEST_CASE("the number of threads changes no byte if shapes exceed every block") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  std::string expected;
  for (const char* threads : {"1", "2", "3", "8", "16"}) {
    const std::string run = folder / (std::string("threads-") + threads);
    require_ok(
        run_maki({"train",       corpus, "--out",     run,   "--threads",      threads, "--n-layer",    "1",
                  "--n-head",    "2",    "--n-embd",  "528", "--block-size",   "272",   "--batch-size", "5",
                  "--max-steps", "2",    "--dropout", "0.1", "--val-fraction", "0",     "--tokenizer",  "byte"}));
    const std::string bytes = read_text(checkpoint(run, 2));
    REQUIRE(bytes.size() > 10000);
    if (expected.empty()) expected = bytes;
    REQUIRE(bytes == expected);
  }
}

TEST_CASE("how often a run evaluates, logs and saves changes no weight") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const std::string expected = straight(folder, corpus);
  int n = 0;
  for (const Arguments& habit :
       {Arguments{"--eval-interval", "7"}, Arguments{"--eval-interval", "1000", "--eval-batches", "0"},
        Arguments{"--log-interval", "1"}, Arguments{"--checkpoint-interval", "3", "--keep-last", "1"}}) {
    const std::string run = folder / fmt::format("habit-{}", n++);
    require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "60"} + kSmall + habit));
    REQUIRE(read_text(checkpoint(run, 60)) == expected);
  }
}

TEST_CASE("an interrupt at any moment saves the last complete step, and the resumed run is the same run") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  // The moments are when a run starts and, then, steps, evaluations, samples and saves; it would not end by itself.
  const Arguments busy = without("--eval-interval", without("--checkpoint-interval", kSmall)) +
                         Arguments{"--eval-interval", "10", "--sample-interval", "7", "--checkpoint-interval", "15"};
  constexpr int kLives = 50, kSteps = 200;
  const auto train = [&](const std::string& run, int steps, const RunOptions& options = {}) {
    return run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", std::to_string(steps)} + busy, options);
  };
  require_ok(train(folder / "straight", kSteps));
  const std::string expected = read_text(checkpoint(folder / "straight", kSteps));
  int resumed = 0;
  for (int i = 0; i < kLives; ++i) {
    const int signal = std::array{SIGINT, SIGTERM, SIGHUP}[static_cast<std::size_t>(i % 3)];
    const std::string run = folder / fmt::format("interrupted-{}", i), last = run + "/checkpoints/last";
    const bool started = i >= 10;
    RunOptions options;
    options.meanwhile = [&](pid_t process) {
      wait_for_handlers(process);
      for (int k = 0; started && k < 60000 && text_so_far(last).empty(); ++k) usleep(1000);
      usleep(static_cast<useconds_t>(1000 * i));
      kill(process, signal);
    };
    const Finished first = train(run, 1'000'000, options);
    INFO("life " << i << ": " << first.err);
    REQUIRE(first.exit_code == 128 + signal);
    const std::string name = text_so_far(last);  // step-00000060.maki
    REQUIRE((!name.empty() || !started));
    if (name.empty()) {
      require_ok(train(run, kSteps));
    } else {
      require_ok(run_maki({"inspect", run, "--verify"}));
      if (std::stoi(name.substr(name.find('-') + 1)) > kSteps) continue;
      require_ok(run_maki({"train", "--resume", run, "--max-steps", std::to_string(kSteps)}));
      ++resumed;
    }
    REQUIRE(read_text(checkpoint(run, kSteps)) == expected);
  }
  REQUIRE(resumed > 0);
}
