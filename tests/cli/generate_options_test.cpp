// maki generate: where the prompt comes from, which seed is used, several samples, and facts as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/trained_run.h"
#include "train/loop/trainer.h"
#include "train/run/checkpoint.h"
#include "train/run/config/configured_optimizer.h"
#include "train/run/loaded_model.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

struct Run : TrainedRun {
  Finished generate(const Arguments& more, const RunOptions& options = {}) const {
    const Finished finished = run_maki(Arguments{"generate", path} + more, options);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return finished;
  }
};

}  // namespace

TEST_CASE("the newline at the end of a piped prompt is dropped, that of a prompt file is kept") {
  const Run run;
  const Arguments rest = {"--max-tokens", "20", "--seed", "1"};
  const std::string expected = run.generate(Arguments{"--prompt", "the"} + rest).out;
  for (const char* typed : {"the", "the\n", "the\r\n"}) {
    RunOptions piped;
    piped.input = typed;
    const Finished finished = run.generate(Arguments{"-"} + rest, piped);
    REQUIRE(finished.out == expected);
    REQUIRE_THAT(finished.err, !ContainsSubstring("Ctrl-D"));
  }
  RunOptions two;
  two.input = "the.\n\n";
  REQUIRE(run.generate(Arguments{"-"} + rest, two).out == run.generate(Arguments{"--prompt", "the.\n"} + rest).out);
  const std::string file = run.folder.write("prompt.txt", "the.\n");
  REQUIRE(run.generate(Arguments{"--prompt-file", file} + rest).out ==
          run.generate(Arguments{"--prompt", "the.\n"} + rest).out);
}

TEST_CASE("a user at a terminal is told how to end a prompt") {
  if (!has_terminals()) return;
  const Run run;
  RunOptions typed;
  typed.typed = "the maki\n\x04";
  const Arguments rest = {"--max-tokens", "20", "--seed", "1"};
  const Finished finished = run.generate(Arguments{"-"} + rest, typed);
  REQUIRE_THAT(finished.err, ContainsSubstring("type the prompt, then press Enter and Ctrl-D"));
  REQUIRE(finished.out == run.generate(Arguments{"--prompt", "the maki"} + rest).out);
}

TEST_CASE("without --seed every text is different, and the printed seed repeats it") {
  const Run run;
  const Arguments warm = {"--prompt", "the ", "--max-tokens", "60", "--temperature", "1.5"};
  const Finished first = run.generate(warm), second = run.generate(warm);
  REQUIRE(first.out != second.out);
  const std::string word = "--seed ";
  const std::size_t at = first.err.find(word) + word.size();
  const std::string seed = first.err.substr(at, first.err.find(')', at) - at);
  REQUIRE_THAT(first.err, ContainsSubstring("seed " + seed + " (reproduce this text with --seed " + seed + ")\n"));
  REQUIRE(run.generate(warm + Arguments{"--seed", seed}).out == first.out);
  REQUIRE_THAT(run.generate(warm + Arguments{"--seed", "5"}).err, !ContainsSubstring("--seed"));
  REQUIRE_THAT(run.generate({"--temperature", "0", "--max-tokens", "5"}).err, !ContainsSubstring("seed"));
}

TEST_CASE("several samples are drawn from different random streams and separated by a line") {
  const Run run;
  const Arguments rest = {"--prompt", "the ", "--max-tokens", "40", "--seed", "3", "--temperature", "1.5"};
  const std::string one = run.generate(rest).out;
  const Finished finished = run.generate(rest + Arguments{"-n", "3"});
  REQUIRE(finished.out.starts_with(one));
  const std::vector<json> samples = json_lines(run.generate(rest + Arguments{"--samples", "3", "--json"}).out);
  REQUIRE(samples.size() == 3);
  std::string joined;
  for (std::size_t i = 0; i < 3; ++i) {
    const json& sample = samples[i];
    REQUIRE(sample.at("sample") == i);
    REQUIRE(sample.at("prompt") == "the ");
    REQUIRE(sample.at("seed") == 3);
    REQUIRE(sample.at("tokens") == 40);
    REQUIRE(sample.at("stop") == "length");
    REQUIRE(sample.at("step") == 30);
    REQUIRE(sample.at("tokens_per_second").get<double>() > 0);
    const std::string text = "the " + sample.at("text").get<std::string>();
    joined += text + (i == 2 ? "" : text.ends_with('\n') ? "---\n" : "\n---\n");
    for (std::size_t j = 0; j < i; ++j) REQUIRE(sample.at("text") != samples[j].at("text"));
  }
  REQUIRE(finished.out == joined);
  REQUIRE_THAT(finished.err, ContainsSubstring("120 tokens of 3 texts in "));
  REQUIRE_THAT(finished.err, ContainsSubstring(" tokens per second\n"));
}

TEST_CASE("a file of prompts: each line is continued as it is alone, in their order") {
  const Run run;
  const Arguments rest = {"--max-tokens", "40", "--seed", "3", "--temperature", "1.5"};
  const std::vector<std::string> prompts = {"the maki", "s", "", "the maki is the maki and the maki is the", "the"};
  const std::string file = run.folder.write("prompts.txt", "the maki\r\ns\n\n" + prompts[3] + "\nthe");
  std::string joined;
  for (const std::string& prompt : prompts) {
    const std::string text = run.generate(Arguments{"--prompt", prompt} + rest).out;
    joined += (joined.empty() ? "" : joined.ends_with('\n') ? "---\n" : "\n---\n") + text;
  }
  const Finished finished = run.generate(Arguments{"--prompts", file} + rest);
  REQUIRE(finished.out == joined);
  REQUIRE_THAT(finished.err, ContainsSubstring("200 tokens of 5 texts in "));
  const std::vector<json> lines =
      json_lines(run.generate(Arguments{"--prompts", file, "-n", "9", "--json"} + rest).out);
  REQUIRE(lines.size() == 45);
  for (std::size_t i = 0; i < 45; ++i) {
    REQUIRE(lines[i].at("prompt") == prompts[i / 9]);
    REQUIRE(lines[i].at("sample") == i % 9);
    if (i % 9 == 0) REQUIRE(joined.find(lines[i].at("text")) != std::string::npos);
  }
  const std::string empty = run.folder.write("empty.txt", "");
  require_refused(run_maki({"generate", run.path, "--prompts", empty}), 3, {"has no lines"});
  require_refused(run_maki({"generate", run.path, "--prompts", file, "--prompt", "the"}), 2, {"use only one of"});
}

TEST_CASE("the JSON facts include why a text ended") {
  const Run run;
  const auto facts = [&](const Arguments& more) {
    const std::vector<json> lines = json_lines(run.generate(Arguments{"--json", "--seed", "1"} + more).out);
    REQUIRE(lines.size() == 1);
    return lines.front();
  };
  const std::string text = facts({"--prompt", "the ", "--max-tokens", "30"}).at("text");
  const json stopped = facts({"--prompt", "the ", "--max-tokens", "30", "--stop", text.substr(5, 2)});
  REQUIRE(stopped.at("stop") == "stop string");
  REQUIRE(text.starts_with(stopped.at("text").get<std::string>()));
  REQUIRE(stopped.at("tokens").get<int>() <= 7);
  REQUIRE(facts({"--prompt", "the ", "--overflow", "stop"}).at("stop") == "window");
  const json empty = facts({"--max-tokens", "0"});
  REQUIRE(empty.at("prompt") == "");
  REQUIRE(empty.at("text") == "");
  REQUIRE(empty.at("tokens") == 0);
}

TEST_CASE("samples that make no sense: exit 2") {
  const Run run;
  require_refused(run_maki({"generate", run.path, "--samples", "0"}), 2, {"samples: must be between 1 and"});
  require_refused(run_maki({"generate", run.path, "-n", "x"}), 2, {"samples: must be a whole number; got x"});
  require_refused(run_maki({"generate", run.path, "-n", "2", "--temperature", "0"}), 2, {"2", "all be the same"});
}

TEST_CASE("a model whose logits are not numbers: generate rejects it with exit 4") {
  const Run run;
  maki::LoadedModel loaded(checkpoint(run.path, 30));
  for (float& x : loaded.store.values().values<float>()) x *= 1e30f;  // finite, but sums of products overflow
  const auto optimizer = maki::make_optimizer(loaded.state.config, loaded.store);
  const std::string broken = run.folder / "broken.maki";
  maki::write_checkpoint(maki::posix_file_system(), broken, loaded.state, loaded.store, *optimizer);
  require_refused(run_maki({"generate", broken}), 4, {broken, "NaN", "diverged"});
}
