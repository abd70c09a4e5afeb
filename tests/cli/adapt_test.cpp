// maki eval --adapt and maki generate --adapt.
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/every_kind.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

// The bytes of all files of a folder, by path.
std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().string()] = read_text(entry.path().string());
  return files;
}

json facts_of(const Arguments& arguments) {
  return json::parse(require_ok(run_maki(arguments + Arguments{"--json"})).out);
}

}  // namespace

TEST_CASE("eval --adapt reports under its own name, beside the ordinary loss, and leaves the run alone") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(train(folder, corpus, {"--ngram-orders", "2"}));
  const auto before = files_of(run);
  json facts = facts_of({"eval", run, "--adapt"});
  REQUIRE(files_of(run) == before);
  const json adapted = facts.at("adapted");
  facts.erase("adapted");
  REQUIRE(facts == facts_of({"eval", run}));
  REQUIRE(adapted.at("window") == 8);
  REQUIRE(adapted.at("targets") == facts.at("targets"));
  for (const char* const reader : {"network", "counts", "mixed"}) {
    REQUIRE(adapted.at(reader).at("loss") < facts.at("val_loss"));
    REQUIRE(adapted.at(reader).at("nats_per_character") > 0);
  }
  REQUIRE(adapted.at("mixed").at("loss") < adapted.at("network").at("loss"));
  REQUIRE(facts_of({"eval", run, "--adapt", "--threads", "3"}).at("adapted") == adapted);
  const json plain = facts_of({"eval", run, "--adapt", "--no-adapt-counts", "--adapt-lr", "0", "--adapt-window", "16"});
  REQUIRE_FALSE(plain.at("adapted").contains("mixed"));
  REQUIRE(plain.at("adapted").at("network").at("loss").get<double>() ==
          Approx(plain.at("val_loss").get<double>()).epsilon(0.01));
  const std::string text = require_ok(run_maki({"eval", run, "--adapt"})).out;
  for (const char* const label : {"\nloss         ", "\nadapting     ", "\ncounts       ", "\nmixed        "})
    REQUIRE_THAT(text, ContainsSubstring(label));
}

TEST_CASE("eval --adapt of another text counts only what it reads") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(train(folder, corpus));
  const std::string part = folder.write("part.txt", small_text().substr(0, 600));
  REQUIRE_THAT(require_ok(run_maki({"eval", run, part, "--adapt"})).out,
               ContainsSubstring("counts of what was read before"));
  REQUIRE_THAT(require_ok(run_maki({"eval", run, "--adapt"})).out,
               ContainsSubstring("counts of the training text and"));
}

TEST_CASE("every model either learns while it reads or says why not") {
  const TemporaryFolder folder;
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const std::string run = folder / kind.name();
    const std::string corpus = folder.write(kind.name() + ".txt", kind.corpus_text);
    require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "1"} + kind.options));
    const Finished finished = run_maki({"eval", run, "--adapt"});
    if (kind.task == "next_token") {
      REQUIRE_THAT(require_ok(finished).out, ContainsSubstring("\nmixed "));
    } else {
      require_refused(finished, 2,
                      {"--adapt applies only to a model that predicts the next token",
                       "the task of " + run + " is " + kind.task, "omit it"});
    }
  }
}

TEST_CASE("options of adaptation are rejected where they would have no effect") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(train(folder, corpus));
  for (const Arguments& option : {Arguments{"--adapt-lr", "0.1"}, Arguments{"--adapt-window", "4"},
                                  Arguments{"--adapt-decay", "0.1"}, Arguments{"--no-adapt-counts"}}) {
    const std::string name = option[0] == "--no-adapt-counts" ? "--adapt-counts" : option[0];
    require_refused(run_maki(Arguments{"eval", run} + option), 2, {name + " applies only with --adapt; add it"});
  }
  require_refused(run_maki({"eval", run, "--adapt", "--eval-batches", "2"}), 2, {"omit --eval-batches"});
  require_refused(run_maki({"eval", run, "--adapt", "--adapt-window", "17"}), 2, {"at most 16 tokens", "got 17"});
  require_refused(run_maki({"eval", run, "--adapt", "--adapt-lr", "2"}), 2, {"adapt_lr", "2"});
}

TEST_CASE("generate --adapt continues a prompt with a model that has learned it") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(train(folder, corpus));
  const auto before = files_of(run);
  const std::string prompt(400, 'k');
  const Arguments generate = {"generate", run, "--prompt", prompt, "--temperature", "0", "--max-tokens", "20"};
  const std::string plain = require_ok(run_maki(generate)).out;
  const std::string adapted = require_ok(run_maki(generate + Arguments{"--adapt", "--adapt-lr", "0.01"})).out;
  REQUIRE(files_of(run) == before);
  REQUIRE(plain != adapted);
  REQUIRE_THAT(adapted, ContainsSubstring(prompt + "kkkkkkkkkk"));
  REQUIRE(require_ok(run_maki(generate + Arguments{"--adapt", "--adapt-lr", "0"})).out == plain);
  REQUIRE(require_ok(run_maki(generate + Arguments{"--adapt", "--adapt-lr", "0.01", "--threads", "3"})).out == adapted);
  REQUIRE_THAT(require_ok(run_maki(generate + Arguments{"--adapt"})).err,
               ContainsSubstring("the prompt has 400 tokens, but the context window holds 16: the model learns all of "
                                 "it and continues from the last 16\n"));
  require_refused(run_maki(generate + Arguments{"--adapt-lr", "0.1"}), 2, {"--adapt-lr applies only with --adapt"});
}
