// A finished run continues under a new phase of its schedule, and a new run starts with the weights of another one.
// Both stay exact.
#include <filesystem>
#include <fmt/format.h>

#include "tests/files.h"
#include "tests/train/resumable_run.h"
#include "train/run/checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

const Arguments kHabit = {"--log-interval", "1", "--keep-last", "100"};

std::string trained(const TemporaryFolder& folder, const std::string& name, const Arguments& more = {},
                    const Arguments& base = without("--lr-decay-steps", kSmall)) {
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / name;
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "20"} + base + kHabit + more));
  return run;
}

Finished resumed(const std::string& run, const Arguments& more) {
  return run_maki(Arguments{"train", "--resume", run} + more);
}

double learning_rate(const std::string& run, int step) {
  const std::string metrics = read_text(run + "/metrics.jsonl"), key = "\"learning_rate\":";
  const std::size_t line = metrics.find(fmt::format("{{\"kind\":\"train\",\"step\":{},", step));
  REQUIRE(line != std::string::npos);
  return std::stod(metrics.substr(metrics.find(key, line) + key.size()));
}

Config config_in(const std::string& file) { return read_state(ContainerReader(file)).config; }

}  // namespace

TEST_CASE(
    "a finished run reports how to continue it, and without --rewarm keeps the learning rate that it ended with") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "run");
  const Finished reached = resumed(run, {});
  INFO(reached.err);
  REQUIRE(reached.exit_code == 0);
  REQUIRE(contains(reached.err, "has reached step 20"));
  REQUIRE(contains(reached.err, "--max-steps 40 --rewarm"));
  const Finished further = resumed(run, {"--max-steps", "24"});
  INFO(further.err);
  REQUIRE(further.exit_code == 0);
  REQUIRE(contains(further.err, "--rewarm starts a new phase"));
  REQUIRE(learning_rate(run, 24) == 0.0003);
  REQUIRE(config_in(checkpoint(run, 24)).phases.empty());
  // A schedule without a horizon needs no new phase.
  const std::string constant =
      trained(folder, "constant", {"--schedule", "constant"}, without("--min-lr", without("--lr-decay-steps", kSmall)));
  REQUIRE_FALSE(contains(resumed(constant, {}).err, "--rewarm"));
  require_ok(resumed(constant, {"--max-steps", "22"}));
  REQUIRE(learning_rate(constant, 22) == 0.003);
}

TEST_CASE("a new phase warms up and decays again, checkpoints before it keep their bytes, and the run stays exact") {
  const TemporaryFolder folder;
  const std::string run = trained(folder, "run"), before = read_text(checkpoint(run, 20));
  REQUIRE_FALSE(contains(before, "phases"));
  const Finished refused = resumed(run, {"--rewarm"});
  REQUIRE(refused.exit_code == 2);
  REQUIRE(contains(refused.err, "--max-steps"));
  require_ok(resumed(run, {"--rewarm", "--max-steps", "40", "--warmup-steps", "4", "--learning-rate", "0.002"}));
  REQUIRE(read_text(checkpoint(run, 20)) == before);
  REQUIRE(config_in(checkpoint(run, 40)).phases == std::vector<Phase>{{20, 40, 0.002, 0.0003, 4}});
  const Finished inspected = run_maki({"inspect", run, "--json"});
  REQUIRE(contains(inspected.out, "\"phases\""));
  REQUIRE(contains(inspected.out, "\"warmup_steps\": 4"));
  REQUIRE(learning_rate(run, 21) == 0.0005);
  REQUIRE(learning_rate(run, 24) == 0.002);
  REQUIRE(learning_rate(run, 40) < 0.0005);
  const std::string expected = read_text(checkpoint(run, 40));

  SECTION("stopped and resumed within the phase") {
    const std::string cut = trained(folder, "cut");
    require_ok(resumed(cut, {"--rewarm", "--max-steps", "27", "--lr-decay-steps", "40", "--warmup-steps", "4",
                             "--learning-rate", "0.002"}));
    require_ok(resumed(cut, {"--max-steps", "40"}));
    REQUIRE(read_text(checkpoint(cut, 40)) == expected);
    REQUIRE(resumed(cut, {"--max-steps", "50", "--learning-rate", "0.002"}).exit_code == 2);
  }
  SECTION("killed before the first checkpoint of the phase") {
    std::filesystem::remove(checkpoint(run, 40));
    for (int step = 21; step < 40; ++step) std::filesystem::remove(checkpoint(run, step));
    require_ok(resumed(run, {}));
    REQUIRE(read_text(checkpoint(run, 40)) == expected);
  }
  SECTION("from the configuration that the run wrote") {
    require_ok(run_maki({"train", folder / "corpus.txt", "--config", run + "/config.toml", "--out", folder / "again"}));
    REQUIRE(read_text(checkpoint(folder / "again", 20)) == before);
    REQUIRE(read_text(checkpoint(folder / "again", 40)) == expected);
  }
  SECTION("a third phase, after a return to the second") {
    require_ok(resumed(run, {"--checkpoint", "20", "--rewarm", "--max-steps", "30", "--learning-rate", "0.001"}));
    REQUIRE(config_in(checkpoint(run, 30)).phases == std::vector<Phase>{{20, 30, 0.001, 0.0003, 5}});
    REQUIRE(read_text(run + "/abandoned-1/step-00000040.maki") == expected);
    require_ok(resumed(run, {"--rewarm", "--max-steps", "34"}));
    REQUIRE(config_in(checkpoint(run, 34)).phases.size() == 2);
  }
}

TEST_CASE("a new run starts with the weights of another, and is itself exact") {
  const TemporaryFolder folder;
  const std::string first = trained(folder, "first"), corpus = folder.write("other.txt", small_text() + "the maki.\n");
  const auto start = [&](const std::string& name, const Arguments& more) {
    return run_maki(Arguments{"train", corpus, "--init-from", first, "--out", folder / name} + kHabit +
                    Arguments{"--batch-size", "2", "--checkpoint-interval", "6"} + more);
  };
  require_ok(start("run", {"--max-steps", "12"}));
  const std::string run = folder / "run";
  const Config config = config_in(checkpoint(run, 0)), origin = config_in(checkpoint(first, 20));
  REQUIRE(config.init_from.size() == 32);
  REQUIRE(config.n_embd == origin.n_embd);
  REQUIRE(config.batch_size == 2);
  const std::string best = read_text(first + "/checkpoints/best");
  const ContainerReader from(first + "/checkpoints/" + best.substr(0, best.find(' '))), to(checkpoint(run, 0));
  REQUIRE(to.read("values") == from.read("values"));
  REQUIRE(to.read("tokenizer") == from.read("tokenizer"));

  require_ok(start("cut", {"--max-steps", "7", "--lr-decay-steps", "12"}));
  // With which weights it began is a fact of the checkpoint, whatever config.toml says.
  std::string toml = read_text(folder / "cut/config.toml");
  const std::size_t line = toml.find("\ninit_from = ");
  REQUIRE(line != std::string::npos);
  folder.write("cut/config.toml", toml.replace(line + 14, 32, std::string(32, '0')));
  require_ok(resumed(folder / "cut", {"--max-steps", "12"}));
  REQUIRE(read_text(checkpoint(folder / "cut", 12)) == read_text(checkpoint(run, 12)));

  const auto refused = [](const Finished& finished, int code, const std::string& words) {
    INFO(finished.err);
    REQUIRE(finished.exit_code == code);
    REQUIRE(contains(finished.err, words));
  };
  refused(start("none", {"--n-embd", "32"}), 2, "n_embd");
  refused(start("none", {"--preset", "baby"}), 2, "n_layer");
  refused(run_maki({"train", "--resume", run, "--init-from", first}), 2, "init_from");
  refused(run_maki({"train", corpus, "--config", run + "/config.toml", "--out", folder / "none"}), 2, "--init-from");
  refused(run_maki(
              {"train", folder.write("greek.txt", small_text() + "Ω"), "--init-from", first, "--out", folder / "none"}),
          3, "Ω");
  refused(run_maki({"train", corpus, "--init-from", folder / "nothing"}), 2, "nothing");
  REQUIRE_FALSE(std::filesystem::exists(folder / "none"));
  require_ok(start("same", {"--n-embd", "16", "--max-steps", "1"}));
}

TEST_CASE("what is said of a schedule is true of its last phase, and of a warmup that continues beyond its end") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Finished begun = require_ok(run_maki(
      Arguments{"train", corpus, "--out", run, "--max-steps", "20", "--warmup-steps", "24", "--lr-decay-steps", "10"} +
      without("--warmup-steps", without("--lr-decay-steps", kSmall)) + kHabit));
  REQUIRE(contains(begun.err, "the warmup of 24 steps does not end within 20 steps: the learning rate stays below"));
  REQUIRE_FALSE(contains(begun.err, "the schedule ends"));
  REQUIRE_FALSE(contains(resumed(run, {}).err, "the learning rate stays at"));
  const Finished longer = require_ok(resumed(run, {"--max-steps", "28"}));
  REQUIRE(contains(longer.err, "the schedule ends at step 24; after that"));
  REQUIRE_FALSE(contains(longer.err, "the warmup of"));
  const Finished again = require_ok(resumed(run, {"--max-steps", "32", "--rewarm", "--warmup-steps", "10"}));
  REQUIRE(contains(again.err, "the warmup of 10 steps does not end within 4 steps"));
}
