// What the verbs do when all goes well: files, facts, generated text.
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/small_run.h"
#include "tests/metrics_lines.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

struct RunOfVerbs {
  explicit RunOfVerbs(const std::string& text = small_text(), const Arguments& more = {}) {
    corpus = folder.write("corpus.txt", text);
    trained = run_maki(Arguments{"train", corpus, "--out", path, "--max-steps", "30", "--seed", "5"} + kSmall + more);
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
  }
  TemporaryFolder folder;
  std::string path = folder / "run", corpus;
  Finished trained;
};

}  // namespace

TEST_CASE("train leaves a run directory with the documented files") {
  const RunOfVerbs run;
  REQUIRE(run.trained.out.empty());
  REQUIRE(std::filesystem::exists(run.path + "/config.toml"));
  REQUIRE(std::filesystem::exists(checkpoint(run.path, 20)));
  REQUIRE(std::filesystem::exists(checkpoint(run.path, 30)));
  REQUIRE_THAT(read_text(run.path + "/checkpoints/last"), ContainsSubstring("step-00000030.maki"));
  REQUIRE_THAT(read_text(run.path + "/checkpoints/best"), ContainsSubstring("step-"));
  int trains = 0, evals = 0, counts = 0, layers = 0, remarks = 0;
  for (const json& line : metrics_lines(run.path + "/metrics.jsonl")) {
    REQUIRE(std::isfinite(line.at("step").get<double>()));
    if (line.at("kind") == "train") {
      for (const char* key : {"loss", "learning_rate", "grad_norm", "tokens", "tokens_per_second", "elapsed_seconds"}) {
        REQUIRE(std::isfinite(line.at(key).get<double>()));
      }
      ++trains;
    } else if (line.at("kind") == "counting") {
      REQUIRE(line.at("val_loss").get<double>() > 0);
      ++counts;
    } else if (line.at("kind") == "layers") {
      REQUIRE(line.at("h.0").size() == 2);
      ++layers;
    } else if (line.at("kind") == "session" || line.at("kind") == "end") {
      REQUIRE_FALSE(line.at("text").get<std::string>().empty());
      ++remarks;
    } else {
      REQUIRE(line.at("kind") == "eval");
      REQUIRE(std::isfinite(line.at("train_loss").get<double>()));
      REQUIRE(std::isfinite(line.at("val_loss").get<double>()));
      ++evals;
    }
  }
  REQUIRE(trains == 3);
  REQUIRE(evals >= 3);
  REQUIRE(counts == 1);
  REQUIRE(layers == evals - 1);  // but for that of the initial values
  REQUIRE(remarks == 2);
}

TEST_CASE("the configuration that a run writes describes the same run") {
  const RunOfVerbs run;
  const std::string again = run.folder / "again";
  const Finished finished = run_maki({"train", run.corpus, "--config", run.path + "/config.toml", "--out", again});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  REQUIRE(read_text(checkpoint(again, 30)) == read_text(checkpoint(run.path, 30)));
}

TEST_CASE("generate echoes its prompt, is reproducible with a seed, and ends at a stop string") {
  const RunOfVerbs run;
  const auto generate = [&](const Arguments& more) {
    const Finished finished =
        run_maki(Arguments{"generate", run.path, "--prompt", "the ", "--max-tokens", "60"} + more);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return finished.out;
  };
  const std::string first = generate({"--seed", "1"});
  REQUIRE(first.starts_with("the "));
  REQUIRE(first.size() >= 64);
  REQUIRE(generate({"--seed", "1"}) == first);
  REQUIRE(generate({"--seed", "2"}) != first);
  REQUIRE(generate({"--temperature", "0"}) == generate({"--temperature", "0"}));
  const std::string stopped = generate({"--seed", "1", "--stop", first.substr(20, 2)});
  REQUIRE(stopped.size() < first.size());
  // A prompt from a file and from standard input are the same prompt.
  const std::string file = run.folder.write("prompt.txt", "the ");
  const Arguments rest = {"--max-tokens", "60", "--seed", "1"};
  REQUIRE(run_maki(Arguments{"generate", run.path, "--prompt-file", file} + rest).out == first);
  RunOptions piped;
  piped.input = "the ";
  REQUIRE(run_maki(Arguments{"generate", run.path, "-"} + rest, piped).out == first);
}

TEST_CASE("the model reads the last block_size tokens of a longer prompt") {
  const RunOfVerbs run;
  const std::string text = small_text();
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string prompt = text.substr(100 * i, 40), end = prompt.substr(40 - 16);
    const Arguments rest = {"--max-tokens", "1", "--temperature", "2", "--seed", std::to_string(i)};
    const Finished whole = run_maki(Arguments{"generate", run.path, "--prompt", prompt} + rest);
    const Finished of_end = run_maki(Arguments{"generate", run.path, "--prompt", end, "--overflow", "stop"} + rest);
    INFO(whole.err << of_end.err);
    REQUIRE(whole.exit_code == 0);
    REQUIRE(of_end.exit_code == 0);
    REQUIRE(whole.out.size() == 41);
    REQUIRE(whole.out.substr(24) == of_end.out);
    REQUIRE_THAT(whole.err, ContainsSubstring("40 tokens") && ContainsSubstring("the last 16"));
  }
  const Finished refused = run_maki({"generate", run.path, "--prompt", text.substr(0, 17), "--overflow", "stop"});
  REQUIRE(refused.exit_code == 2);
  REQUIRE(refused.out.empty());
  REQUIRE_THAT(refused.err, ContainsSubstring("prompt: has 17 tokens, but the context window holds 16"));
  // A prompt that fills the window leaves room for one token, or for any number if the window is recomputed.
  const Arguments full = {"generate", run.path, "--prompt", text.substr(0, 16), "--max-tokens", "50"};
  REQUIRE(run_maki(full + Arguments{"--overflow", "stop"}).out.size() == 17);
  REQUIRE(run_maki(full).out.size() == 66);
}

TEST_CASE("a model that remembers without a limit reads a prompt of any length whole") {
  const RunOfVerbs run(small_text(), {"--model", "transformer-xl"});
  const std::string prompt = small_text().substr(0, 60);
  const Finished whole = run_maki({"generate", run.path, "--prompt", prompt, "--max-tokens", "3"});
  INFO(whole.err);
  REQUIRE(whole.exit_code == 0);
  REQUIRE(whole.out.size() == 63);
  REQUIRE(whole.err.find("context window") == std::string::npos);
  for (const char* reaction : {"stop", "recompute"})
    require_refused(run_maki({"generate", run.path, "--prompt", prompt, "--overflow", reaction}), 2,
                    {"overflow: has no effect", "any length", "omit --overflow"});
}

TEST_CASE("training, prompts and generation handle Japanese without breaking a character") {
  const RunOfVerbs run(small_japanese_text());
  const Finished finished = run_maki({"generate", run.path, "--prompt", "吾輩は", "--max-tokens", "100"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  REQUIRE(finished.out.starts_with("吾輩は"));
  REQUIRE_FALSE(maki::invalid_utf8(finished.out).has_value());

  const RunOfVerbs bytes(small_japanese_text(), {"--tokenizer", "byte"});
  for (int seed = 0; seed < 5; ++seed) {
    const Finished text = run_maki({"generate", bytes.path, "--max-tokens", "50", "--seed", std::to_string(seed)});
    INFO(text.err);
    REQUIRE(text.exit_code == 0);
    REQUIRE_FALSE(maki::invalid_utf8(text.out).has_value());
  }
}

TEST_CASE("eval repeats the validation loss of the run") {
  const RunOfVerbs run(small_text(), {"--eval-batches", "0"});
  double expected = 0;
  for (const json& line : metrics_lines(run.path + "/metrics.jsonl")) {
    if (line.at("kind") == "eval" && line.at("step") == 30) expected = line.at("val_loss").get<double>();
  }
  const Finished finished = run_maki({"eval", run.path, run.corpus, "--checkpoint", "last", "--json"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  REQUIRE(json::parse(finished.out).at("val_loss").get<double>() == expected);
}

TEST_CASE("eval reports how much of the text it evaluated") {
  const RunOfVerbs run;
  const Finished all = run_maki({"eval", run.path, run.corpus}),
                 one = run_maki({"eval", run.path, "--eval-batches", "1"});
  REQUIRE(all.exit_code == 0);
  REQUIRE(one.exit_code == 0);
  REQUIRE_THAT(all.out, ContainsSubstring("477 targets\n"));  // a tenth of 4,782 characters, less the first
  REQUIRE_THAT(one.out, ContainsSubstring("48 targets (1 of 10 batches, spread evenly)\n"));
  const json facts = json::parse(run_maki({"eval", run.path, "--eval-batches", "99", "--json"}).out);
  REQUIRE(facts.at("batches") == 10);
  REQUIRE(facts.at("batches_of_text") == 10);
  REQUIRE(facts.at("targets") == 477);
}

TEST_CASE("inspect reports the contents of a checkpoint") {
  const RunOfVerbs run;
  const Finished finished = run_maki({"inspect", run.path, "--verify", "--json"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const json facts = json::parse(finished.out);
  REQUIRE(facts.at("step") == 30);
  REQUIRE(facts.at("verified") == true);
  REQUIRE(facts.at("parameters").get<int>() > 1000);
  REQUIRE(facts.at("config").at("n_layer") == 2);
  REQUIRE(facts.at("config").at("dropout") == 0.1);
  REQUIRE(facts.at("config").at("tie_weights") == true);
  REQUIRE(facts.at("config").at("schedule") == "cosine");
  REQUIRE_FALSE(facts.at("config").contains("threads"));  // a field of the run, not of the checkpoint
  const Finished plain = run_maki({"inspect", checkpoint(run.path, 20)});
  REQUIRE(plain.exit_code == 0);
  REQUIRE_THAT(plain.out, ContainsSubstring("wte.weight"));
}

TEST_CASE("inspect --verify reports for every checkpoint of a run whether it can be resumed, or why not") {
  const RunOfVerbs run;
  const Finished good = run_maki({"inspect", run.path, "--verify"});
  INFO(good.out << good.err);
  REQUIRE(good.exit_code == 0);
  for (const int step : {20, 30})
    REQUIRE_THAT(good.out, ContainsSubstring(checkpoint(run.path, step) + ": can be resumed"));
  const std::string damaged = checkpoint(run.path, 20), before = read_text(damaged);
  std::string bytes = before;
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);  // a moment of the optimizer
  std::ofstream(damaged, std::ios::binary) << bytes;
  const Finished bad = run_maki({"inspect", run.path, "--verify"});
  const Finished listed = run_maki({"inspect", run.path, "--verify", "--json"});
  const Finished one = run_maki({"inspect", damaged, "--verify"});
  std::ofstream(damaged, std::ios::binary) << before;
  INFO(bad.out << bad.err);
  REQUIRE(bad.exit_code == 4);
  REQUIRE_THAT(bad.out, ContainsSubstring("cannot be resumed: " + damaged));
  REQUIRE_THAT(bad.out, ContainsSubstring(checkpoint(run.path, 30) + ": can be resumed"));
  REQUIRE_THAT(bad.err, ContainsSubstring("(1 of "));
  REQUIRE(listed.exit_code == 4);
  const json facts = json::parse(listed.out);
  REQUIRE(facts.at("verified") == false);
  for (const json& verdict : facts.at("checkpoints")) {
    const bool good_one = verdict.at("path") != damaged;
    REQUIRE(verdict.at("resumable") == good_one);
    if (!good_one) REQUIRE_THAT(verdict.at("fault").get<std::string>(), ContainsSubstring(damaged));
  }
  REQUIRE(one.exit_code == 4);
  REQUIRE_THAT(one.err, ContainsSubstring(damaged));
}

TEST_CASE("gradcheck verifies a configured model, and a run") {
  const RunOfVerbs run;
  const Finished of_run = run_maki({"gradcheck", run.path});
  INFO(of_run.out << of_run.err);
  REQUIRE(of_run.exit_code == 0);
  REQUIRE_THAT(of_run.out, ContainsSubstring("h.1.mlp.c_proj.weight"));
  const Finished configured =
      run_maki({"gradcheck", "--n-layer", "1", "--n-head", "2", "--n-embd", "8", "--block-size", "8"});
  INFO(configured.out << configured.err);
  REQUIRE(configured.exit_code == 0);
}

TEST_CASE("gradcheck accepts a model with the kinks of relu, and one whose gradients are all zero") {
  const Arguments small = {"--n-layer", "2", "--n-head", "1", "--block-size", "8", "--json"};
  std::int64_t halved = 0;
  for (const char* width : {"1", "2", "64"}) {
    for (const char* seed : {"1", "2"}) {
      const Finished finished =
          run_maki(Arguments{"gradcheck", "--activation", "relu", "--n-embd", width, "--seed", seed} + small);
      INFO(width << " wide, seed " << seed << ": " << finished.out << finished.err);
      REQUIRE(finished.exit_code == 0);
      halved += json::parse(finished.out).at("halved").get<std::int64_t>();
    }
  }
  REQUIRE(halved > 0);

  const RunOfVerbs constant(std::string(500, 'a'));  // a vocabulary of one: loss and gradients are 0
  const Finished of_run = run_maki({"gradcheck", constant.path});
  INFO(of_run.out << of_run.err);
  REQUIRE(of_run.exit_code == 0);
  const RunOfVerbs relu(small_text(), {"--activation", "relu"});
  const Finished trained = run_maki({"gradcheck", relu.path});
  INFO(trained.out << trained.err);
  REQUIRE(trained.exit_code == 0);
}

TEST_CASE("help and version are results") {
  for (const Arguments& arguments : {Arguments{"--help"}, Arguments{"train", "--help"}, Arguments{"--version"}}) {
    const Finished finished = run_maki(arguments);
    REQUIRE(finished.exit_code == 0);
    REQUIRE(finished.out.size() > 3);
    REQUIRE(finished.err.empty());
    REQUIRE_THAT(finished.out,
                 !ContainsSubstring("{false}") && !ContainsSubstring("SUBCOMMAND") && !ContainsSubstring("Subcommand"));
  }
}

TEST_CASE("every dtype, optimizer and schedule trains") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  int n = 0;
  for (const Arguments& choice :
       {Arguments{"--dtype", "float64"}, Arguments{"--optimizer", "sgd", "--momentum", "0.9", "--nesterov"},
        Arguments{"--optimizer", "adam"}, Arguments{"--schedule", "wsd"}, Arguments{"--schedule", "inverse_sqrt"},
        Arguments{"--schedule", "constant"}, Arguments{"--schedule", "linear"},
        Arguments{"--no-tie-weights", "--no-bias"}, Arguments{"--activation", "relu", "--label-smoothing", "0.1"}}) {
    const std::string run = folder / fmt::format("run-{}", n++);
    Arguments base = kSmall;
    if (choice.back() == "inverse_sqrt" || choice.back() == "constant") base = without("--lr-decay-steps", base);
    if (choice.back() == "constant") base = without("--min-lr", base);
    const Finished finished = run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "12"} + base + choice);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    // The model learns: the last loss is below the first.
    const auto lines = metrics_lines(run + "/metrics.jsonl");
    double first = 0, last = 0;
    for (const json& line : lines) {
      if (line.at("kind") != "eval") continue;
      if (first == 0) first = line.at("val_loss").get<double>();
      last = line.at("val_loss").get<double>();
    }
    REQUIRE(last < first);
  }
}
