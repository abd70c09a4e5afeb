// Runs that are planned for a time: maki train --minutes and maki plan. What is required here holds for any number of
// steps, so that nothing depends on the speed of the machine.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/require_refused.h"

using namespace maki::tests;

namespace {

// A second and a half, on a model that trains quickly.
const Arguments kShort = {"--minutes",    "0.025", "--n-layer", "1", "--n-embd",     "16",
                          "--block-size", "16",    "--threads", "1", "--ngram-rows", "1024"};

// Long enough that the time ends a run, and not the text.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += small_text();
  return text;
}

std::string newest_checkpoint(const std::string& run) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".maki")) newest = std::max(newest, path);
  }
  return newest;
}

}  // namespace

TEST_CASE("the configuration of a planned run describes the same run without a time limit, byte for byte") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", long_text()), run = folder / "run", again = folder / "again";
  const Finished planned = require_ok(run_maki(Arguments{"train", corpus, "--out", run} + kShort));
  REQUIRE_THAT(planned.err, ContainsSubstring("plan   1 layer of width 16 on ") && ContainsSubstring("done: "));
  const std::string config = read_text(run + "/config.toml");
  REQUIRE_THAT(config, ContainsSubstring("\nn_embd = 16 ") && ContainsSubstring("\nschedule = 'linear' ") &&
                           !ContainsSubstring("minutes"));
  require_ok(run_maki({"train", "--config", run + "/config.toml", "--out", again}));
  const std::string newest = newest_checkpoint(run);
  REQUIRE_FALSE(newest.empty());
  REQUIRE(newest_checkpoint(again) == again + newest.substr(run.size()));
  REQUIRE(read_text(newest_checkpoint(again)) == read_text(newest));
}

TEST_CASE("a planned run that is interrupted continues with the steps that its configuration has") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", long_text()), run = folder / "run", again = folder / "again";
  require_ok(run_maki(Arguments{"train", corpus, "--out", run} + kShort));
  // The state before the first step, as an interruption leaves it.
  std::filesystem::copy(run, again, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::directory_iterator(again + "/checkpoints")) {
    if (entry.path().filename() != "step-00000000.maki") std::filesystem::remove(entry.path());
  }
  std::filesystem::remove(again + "/metrics.jsonl");
  const std::string newest = newest_checkpoint(run);
  if (!std::filesystem::exists(again + "/checkpoints/step-00000000.maki")) return;  // it was pruned: a fast machine
  require_ok(run_maki({"train", "--resume", again}));
  REQUIRE(read_text(newest_checkpoint(again)) == read_text(newest));
}

TEST_CASE("a time limit is refused beside what it would contradict") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const auto refused = [&](const Arguments& more, const std::vector<std::string>& words) {
    require_refused(run_maki(Arguments{"train", corpus, "--out", run} + more), 2, words);
    REQUIRE_FALSE(std::filesystem::exists(run));
  };
  refused({"--minutes", "1", "--lr-decay-steps", "5"}, {"minutes: ", "--lr-decay-steps"});
  refused({"--minutes", "1", "--preset", "baby"}, {"minutes: ", "--preset"});
  refused({"--minutes", "1", "--config", "x.toml"}, {"minutes: ", "--config"});
  refused({"--minutes", "0"}, {"minutes: ", "0.01"});
  refused({"--minutes", "soon"}, {"minutes: ", "soon"});
  refused({"--minutes", "5d"}, {"minutes: ", "5d"});
  refused({"--minutes", "0s"}, {"minutes: ", "0.6s", "got 0s"});
  refused({"--minutes", "1m30s"}, {"minutes: ", "one unit", "got 1m30s"});
  refused({"--minutes", "1667h"}, {"minutes: must be between ", "1666.6", "got 1667"});
  refused({"--max-steps", "5", "--explain"}, {"explain: "});
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "1"} + kSmall));
  const Arguments resumed = {"train", "--resume", run, "--max-steps", "2"};
  require_refused(run_maki(resumed + Arguments{"--minutes", "1"}), 2, {"minutes: ", "--max-steps"});
  require_refused(run_maki(resumed + Arguments{"--explain"}), 2, {"explain: ", "omit"});
  require_refused(run_maki(resumed + Arguments{"--out", folder / "other"}), 2, {"out: ", "stays in its directory"});
  REQUIRE_FALSE(std::filesystem::exists(checkpoint(run, 2)));
  require_refused(run_maki({"plan", corpus, "--preset", "baby"}), 2, {"--preset", "maki plan"});
  require_refused(run_maki({"plan", corpus, "--minutes", "0.6s", "--learning-rate", "0"}), 2, {"learning_rate"});
  for (const char* option : {"--out", "--max-steps", "--lr-decay-steps", "--patience", "--keep-last"})
    require_refused(run_maki({"plan", corpus, option, "1"}), 2, {std::string(option) + ": is an option of maki train"});
}

TEST_CASE("plan prints what train would choose, and trains nothing") {
  const TemporaryFolder folder;
  RunOptions inside;
  inside.working_directory = folder / "";
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments plan = {"plan", corpus, "--minutes", "2", "--n-embd", "16", "--threads", "1"};
  const Finished text = require_ok(run_maki(plan, inside));
  REQUIRE_THAT(text.out, ContainsSubstring("n_layer ") && ContainsSubstring("passes over the training data"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "runs"));
  const auto facts = nlohmann::json::parse(require_ok(run_maki(plan + Arguments{"--json"}, inside)).out);
  REQUIRE(facts.at("seconds").get<double>() > 0);
  REQUIRE(facts.at("seconds").get<double>() <= 120);
  REQUIRE(facts.at("passes").get<double>() > 0);
  REQUIRE(facts.at("memory_bytes").get<double>() > 0);
  REQUIRE(facts.at("fields").at("max_steps").get<int>() >= 1);
  REQUIRE_FALSE(facts.at("fields").contains("n_embd"));
  REQUIRE(facts.at("measured").at(0).at("n_embd") == 16);
  std::size_t fields = 0;
  for (const auto& reason : facts.at("reasons")) fields += reason.at("fields").size();
  REQUIRE(fields == facts.at("fields").size());
}

TEST_CASE("plan shows what train would choose for every kind of model") {
  const TemporaryFolder folder;
  const std::string pairs = folder.write("pairs.tsv", "a b\tx y\nb\ty\nc a\tz x\na\tx\n");
  for (const Arguments& model : {Arguments{"seq2seq"}, Arguments{"encoder", "--task", "classify"}, Arguments{"encoder"},
                                 Arguments{"transformer-xl"}}) {
    const std::string& text = model.size() == 1 && model[0] != "seq2seq" ? folder.write("text", small_text()) : pairs;
    INFO(model.back());
    const auto facts = nlohmann::json::parse(
        require_ok(run_maki(Arguments{"plan", text, "--minutes", "0.05", "--json", "--model"} + model)).out);
    REQUIRE(facts.at("fields").at("n_embd") == 64);
    REQUIRE(facts.at("fields").at("max_steps").get<int>() >= 1);
    REQUIRE(facts.at("seconds").get<double>() > 0);
  }
}

TEST_CASE("plan makes tokens of columns as train does") {
  const TemporaryFolder folder;
  // A word that occurs once is spelled, with the space that is put before each line, and this text has no other space.
  const std::string pairs = folder.write("pairs.tsv", "ab\tba\ncd\tdc\nabc\tcba\nda\tad\n");
  const Arguments options = {pairs, "--model", "seq2seq", "--tokenizer", "word", "--threads", "1"};
  const Arguments plan = Arguments{"plan"} + options + Arguments{"--minutes", "0.05", "--json"};
  const auto facts = nlohmann::json::parse(require_ok(run_maki(plan)).out);
  REQUIRE_FALSE(facts.at("fields").contains("tokenizer"));
  REQUIRE(facts.at("fields").at("max_steps").get<int>() >= 1);
  require_ok(run_maki(Arguments{"train"} + options + Arguments{"--out", folder / "run", "--max-steps", "1"}));
}

TEST_CASE("a plan for several ranks shows what each of them has, and how many pay") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  const Arguments plan = {"plan", corpus, "--minutes", "2", "--n-embd", "16", "--n-layer", "2", "--threads", "1"};
  const auto facts = [&](const Arguments& options) {
    return nlohmann::json::parse(require_ok(run_maki(plan + options + Arguments{"--json"})).out);
  };
  const Arguments slow = {"--latency", "1e5", "--bandwidth", "0.001"};
  const auto six = facts(Arguments{"--ranks", "6"} + slow);
  REQUIRE(six.at("grad_accum") == 6);
  REQUIRE(six.at("useful_ranks") == 1);
  REQUIRE(six.at("ranks").size() == 4);
  for (const auto& row : six.at("ranks")) {
    const int ranks = row.at("ranks");
    INFO(ranks);
    REQUIRE(row.at("micro_batches") == (6 + ranks - 1) / ranks);
    const double of_one = six.at("ranks").back().at("gflop");  // of six ranks, each has one micro-batch
    REQUIRE(row.at("gflop").get<double>() == Approx(row.at("micro_batches").get<int>() * of_one));
    REQUIRE((row.at("messages_sent") == 0) == (ranks == 1));
    const double compute = row.at("compute_seconds"), network = row.at("network_seconds");
    REQUIRE(compute > 0);
    if (ranks == 1) REQUIRE(network == 0);
    if (ranks > 1) REQUIRE(network > 0.1 * row.at("messages_sent").get<double>());
    const double alone = six.at("ranks").at(0).at("compute_seconds");
    REQUIRE(row.at("efficiency").get<double>() == Approx(alone / (ranks * (compute + network))));
  }
  // A step takes what the network takes of it, so fewer fit into the time.
  REQUIRE(six.at("fields").at("max_steps") < 120 / 0.1);
  REQUIRE_FALSE(facts({}).contains("useful_ranks"));
  REQUIRE(facts({"--ranks", "2", "--grad-accum", "8", "--latency", "0", "--bandwidth", "1e6"}).at("useful_ranks") == 2);
  const Finished text = require_ok(run_maki(plan + Arguments{"--ranks", "6"} + slow));
  REQUIRE_THAT(text.out, ContainsSubstring("It pays to start 1 rank;") && ContainsSubstring("efficiency") &&
                             !ContainsSubstring("n-gram tables"));
  REQUIRE_THAT(require_ok(run_maki(plan + Arguments{"--ranks", "2", "--ngram-orders", "2"})).out,
               ContainsSubstring("The rows of n-gram tables, which ranks send as well, are not counted.\n"));
  // Each rank counts.
  REQUIRE_THAT(require_ok(run_maki(plan + Arguments{"--ranks", "2", "--teacher", "@counts"})).out,
               ContainsSubstring("memory of each of 2 ranks: ") && ContainsSubstring("counts that teach"));
  require_refused(run_maki(plan + Arguments{"--latency", "3"}), 2, {"--latency: ", "--ranks"});
  for (const Arguments& wrong : {Arguments{"--ranks", "0"},
                                 {"--ranks", "65537"},
                                 {"--latency", "-1"},
                                 {"--latency", "1000001"},
                                 {"--bandwidth", "0"},
                                 {"--bandwidth", "1000001"}})
    require_refused(run_maki(plan + Arguments{"--ranks", "2"} + wrong), 2,
                    {wrong[0].substr(2) + ": must be between ", "got " + wrong[1]});
}

TEST_CASE("texts of any length are planned and trained, and say in one line how") {
  const TemporaryFolder folder;
  for (const std::size_t characters : {30U, 100U, 600U, 1000U, 1200U, 2100U}) {
    std::string text = long_text();
    text.resize(characters);
    const std::string corpus = folder.write(std::to_string(characters) + ".txt", text);
    const std::string run = folder / ("run-" + std::to_string(characters));
    const Finished trained = require_ok(run_maki({"train", corpus, "--minutes", "1s", "--out", run, "--threads", "1"}));
    INFO(trained.err);
    REQUIRE(trained.err.starts_with("text   reading "));
    REQUIRE_THAT(trained.err, ContainsSubstring("\nplan   ") && !ContainsSubstring("plan   tokenizer"));
    require_ok(run_maki({"generate", run, "--max-tokens", "5"}));
  }
}

TEST_CASE(
    "the option --explain prints every value of a plan with its reason, and --max-steps limits a run beside its time") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", long_text()), run = folder / "run";
  const Finished trained =
      require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--explain", "--max-steps", "2"} + kShort));
  REQUIRE_THAT(trained.err, ContainsSubstring("\nplan   learning_rate ") || ContainsSubstring(", learning_rate "));
  REQUIRE_THAT(trained.err, ContainsSubstring("done: 2 steps"));
}

TEST_CASE("every model and task has a time limit, and a run with given weights as well") {
  const TemporaryFolder folder;
  std::string labels, pairs;
  for (int i = 0; i < 40; ++i) {
    labels += std::string(i % 2 == 0 ? "good thing" : "bad thing") + "\t" + (i % 2 == 0 ? "pos" : "neg") + "\n";
    pairs += "one two\tun deux\n";
  }
  const std::string text = folder.write("text.txt", long_text());
  const std::string labelled = folder.write("labels.tsv", labels), parallel = folder.write("pairs.tsv", pairs);
  const Arguments limit = {"--minutes", "1s", "--threads", "1"};
  const auto trained = [&](const std::string& name, const Arguments& arguments) {
    const Finished run =
        require_ok(run_maki(Arguments{"train"} + arguments + Arguments{"--out", folder / name} + limit));
    INFO(name << ": " << run.err);
    REQUIRE_THAT(run.err, ContainsSubstring("\nplan   ") && ContainsSubstring("done: "));
    return run.err;
  };
  REQUIRE_THAT(trained("classify", {labelled, "--model", "encoder", "--task", "classify"}),
               ContainsSubstring(", accuracy "));
  // Size and length are planned one after the other.
  REQUIRE_THAT(trained("translate", {parallel, "--model", "seq2seq", "--explain"}),
               ContainsSubstring("1 layer of width 64") &&
                   ContainsSubstring("\nplan   n_layer 1, n_embd 64, batch_size 32: for ") &&
                   ContainsSubstring(": the learning rate falls to 0 at the end of the time\n"));
  REQUIRE_THAT(read_text(folder / "translate/metrics.jsonl"),
               ContainsSubstring("\"1 layer of width 64 on ") && !ContainsSubstring("plan   "));
  trained("masked", {text, "--model", "encoder", "--block-size", "16"});
  trained("xl", {text, "--model", "transformer-xl", "--block-size", "16"});
  trained("base", {text});
  trained("tuned", {text, "--init-from", folder / "base"});
  trained("adapted", {text, "--init-from", folder / "base", "--lora-rank", "2"});
  trained("frozen", {text, "--init-from", folder / "base", "--freeze", "wte*"});
  // Weights that have learned already need small steps.
  for (const char* const name : {"base", "tuned", "adapted", "frozen"}) {
    INFO(name);
    REQUIRE((read_text(folder / name + "/config.toml").find("\nlearning_rate = 0.0003 ") != std::string::npos) ==
            (name == std::string("tuned") || name == std::string("frozen")));
  }
}
