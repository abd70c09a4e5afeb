// Promises of the command line that only whole runs can test: reported numbers, pointers, exit codes.
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"
#include "tests/metrics_lines.h"
#include "train/run/run_directory.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

// Waits until the file contains the text. Gives up after half a minute, so that the test fails by its next requirement.
void wait_until(const std::string& file, const std::string& text) {
  for (int i = 0; i < 3000 && text_so_far(file).find(text) == std::string::npos; ++i) usleep(10000);
}

// A model that is still training when the signals come.
const Arguments kSlow = {"--n-layer",    "4",   "--n-head",     "4",  "--n-embd",    "256",
                         "--block-size", "256", "--batch-size", "32", "--max-steps", "1000"};

}  // namespace

TEST_CASE("perplexity, nats per character and bits per byte of Japanese text follow from its loss") {
  const TemporaryFolder folder;
  const std::string text = small_japanese_text(), corpus = folder.write("corpus.txt", text);
  const std::string sample = "吾輩は猫である。山と川の話。", path = folder.write("sample.txt", sample);
  const double characters = 14, bytes = 42;
  REQUIRE(sample.size() == 42);
  for (const char* const tokenizer : {"char", "byte"}) {
    const std::string run = folder / tokenizer;
    require_ok(
        run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "5", "--tokenizer", tokenizer} + kSmall));
    const Finished finished = run_maki({"eval", run, path, "--json"});
    require_ok(finished);
    const json facts = json::parse(finished.out);
    const double loss = facts.at("val_loss"), tokens = tokenizer == std::string("char") ? characters : bytes;
    INFO(tokenizer << ": " << finished.out);
    REQUIRE(loss > 0.5);
    REQUIRE(facts.at("targets") == static_cast<std::int64_t>(tokens) - 1);
    REQUIRE(facts.at("perplexity").get<double>() == Approx(std::exp(loss)).epsilon(1e-12));
    REQUIRE(facts.at("nats_per_character").get<double>() == Approx(loss * tokens / 14).epsilon(1e-12));
    REQUIRE(facts.at("bits_per_byte").get<double>() == Approx(loss * tokens / 42 / std::log(2.0)).epsilon(1e-12));
    REQUIRE(facts.at("bits_per_character").get<double>() == Approx(loss * tokens / 14 / std::log(2.0)).epsilon(1e-12));
  }
}

TEST_CASE("a run that diverges exits with 5, and the checkpoint from before can be used") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const char* const optimizer : {"sgd", "adamw"}) {
    const std::string run = folder / optimizer;
    const Finished finished = run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "400"} + kSmall +
                                       Arguments{"--optimizer", optimizer, "--learning-rate", "1000", "--min-lr",
                                                 "1000", "--grad-clip", "0", "--warmup-steps", "0", "--weight-decay",
                                                 "1000", "--checkpoint-interval", "1000", "--eval-interval", "1000"});
    INFO(optimizer << ": " << finished.err);
    REQUIRE(finished.exit_code == 5);
    REQUIRE(finished.out.empty());
    REQUIRE_THAT(finished.err, ContainsSubstring("diverged"));
    require_ok(run_maki({"inspect", run, "--checkpoint", "last", "--verify"}));
    require_ok(run_maki({"generate", run, "--checkpoint", "last", "--max-tokens", "3", "--seed", "1"}));
  }
}

TEST_CASE("a second interrupt ends a run at once, without saving") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text() + small_text() + small_text()),
                    run = folder / "run";
  RunOptions options;
  options.meanwhile = [&](pid_t process) {
    wait_until(run + "/checkpoints/last", "step-00000000");
    // The process is stopped, so that it handles both signals before it continues with its batch.
    for (const int signal : {SIGSTOP, SIGINT, SIGTERM, SIGCONT}) kill(process, signal);
  };
  const Finished finished = run_maki(Arguments{"train", corpus, "--out", run} + kSlow, options);
  INFO(finished.err);
  REQUIRE((finished.exit_code == 128 + SIGTERM || finished.exit_code == 128 + SIGINT));
  REQUIRE_THAT(finished.err, ContainsSubstring("maki: interrupted"));
  REQUIRE_THAT(finished.err, !ContainsSubstring("saved"));
  REQUIRE(maki::RunDirectory(run).checkpoints() == std::vector<std::int64_t>{0});
}

TEST_CASE("after an interrupt between two checkpoints, last names the step that was reached") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  RunOptions options;
  options.meanwhile = [&](pid_t process) {
    wait_until(run + "/metrics.jsonl", "\"step\":3,");
    kill(process, SIGINT);
  };
  const Finished finished = run_maki(Arguments{"train", corpus, "--out", run} + kSmall +
                                         Arguments{"--max-steps", "100000", "--checkpoint-interval", "100000",
                                                   "--log-interval", "1", "--eval-interval", "100000"},
                                     options);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 128 + SIGINT);
  const maki::RunDirectory directory(run);
  const std::int64_t last = directory.last().value();
  REQUIRE(last >= 3);
  REQUIRE(last == directory.checkpoints().back());
  REQUIRE(last == metrics_lines(run + "/metrics.jsonl", "train").back().at("step"));
  const Finished inspected = run_maki({"inspect", run, "--checkpoint", "last", "--json"});
  require_ok(inspected);
  REQUIRE(json::parse(inspected.out).at("step") == last);
}

TEST_CASE("a training field that was edited in config.toml is refused, as its option is, and a run field is used") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "6"} + kSmall));
  const std::string written = read_text(run + "/config.toml");
  const auto edit = [&](const std::string& from, const std::string& to) {
    std::string config = written;
    const std::size_t at = config.find("\n" + from + " ");
    REQUIRE(at != std::string::npos);
    write_bytes(run + "/config.toml", config.replace(at + 1, from.size(), to));
  };
  for (const auto& [from, to] : {std::pair{"learning_rate = 0.003", "learning_rate = 0.3"},
                                 {"dropout = 0.1", "dropout = 0.5"},
                                 {"seed = 1337", "seed = 1"},
                                 {"n_layer = 2", "n_layer = 3"}}) {
    edit(from, to);
    const std::string name = std::string(from).substr(0, std::string(from).find(' '));
    require_refused(run_maki({"train", "--resume", run, "--max-steps", "12"}), 2,
                    {run + "/config.toml: " + name + " is fixed for this run at ", "restore it, or start a new run"});
  }
  edit("max_steps = 6", "max_steps = 8");
  require_ok(run_maki({"train", "--resume", run}));
  REQUIRE(std::filesystem::exists(checkpoint(run, 8)));
}

TEST_CASE("a resume of what has no checkpoint says what a run is, and how one without begins") {
  const TemporaryFolder folder;
  const std::string file = folder.write("corpus.txt", small_text());
  for (const std::string& path : {file, folder / "missing"}) {
    require_refused(run_maki({"train", "--resume", path}), 2,
                    {path + ": is no run to resume", "name a run", "repeat the command"});
  }
  REQUIRE(maki::file_names(folder / ".") == std::vector<std::string>{"corpus.txt"});
}

TEST_CASE("a run that was moved resumes, generates and evaluates from its new place, with the same bytes") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const std::string straight = folder / "straight", first = folder / "first", moved = folder / "moved to";
  require_ok(run_maki(Arguments{"train", corpus, "--out", straight, "--max-steps", "12"} + kSmall));
  require_ok(run_maki(Arguments{"train", corpus, "--out", first, "--max-steps", "6"} + kSmall));
  std::filesystem::rename(first, moved);
  require_ok(run_maki({"train", "--resume", moved, "--max-steps", "12"}));
  REQUIRE_FALSE(std::filesystem::exists(first));
  REQUIRE_THAT(read_text(moved + "/config.toml"), ContainsSubstring("moved to") && !ContainsSubstring(first));
  REQUIRE(read_text(checkpoint(moved, 12)) == read_text(checkpoint(straight, 12)));
  require_ok(run_maki({"generate", moved, "--max-tokens", "3", "--seed", "1"}));
  require_ok(run_maki({"eval", moved}));
}

TEST_CASE("a run whose text was moved says so, and resumes and evaluates with the new place") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), moved = folder / "moved.txt",
                    run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "4"} + kSmall));
  std::filesystem::rename(corpus, moved);
  const std::vector<std::string> words = {run + ": the text of this run was " + corpus, "its new place as CORPUS"};
  require_refused(run_maki({"train", "--resume", run, "--max-steps", "6"}), 3, words);
  require_refused(run_maki({"eval", run}), 3, words);
  require_ok(run_maki({"eval", run, moved}));
  require_ok(run_maki({"train", moved, "--resume", run, "--max-steps", "6"}));
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "8"}));  // the run knows the new place
}

TEST_CASE("the tokens in metrics.jsonl count from the beginning of the run, also after it was resumed") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "4", "--log-interval", "2"} + kSmall));
  require_ok(run_maki({"train", "--resume", run, "--max-steps", "7"}));
  std::vector<std::int64_t> steps;
  for (const json& line : metrics_lines(run + "/metrics.jsonl", "train")) {
    steps.push_back(line.at("step"));
    REQUIRE(line.at("tokens") == steps.back() * 3 * 3 * 16);  // batch_size · grad_accum · block_size
  }
  REQUIRE(steps == std::vector<std::int64_t>{2, 4, 6, 7});
}
