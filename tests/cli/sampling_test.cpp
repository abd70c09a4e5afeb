// maki generate: penalties, bias, min-p and log-probabilities.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"
#include "tests/cli/trained_run.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

struct SampledRun : TrainedRun {
  std::string generate(const Arguments& more) const { return certain(Arguments{"--seed", "3"} + more); }
  // Without a seed, where nothing is drawn.
  std::string certain(const Arguments& more) const {
    return require_ok(run_maki(Arguments{"generate", path, "--max-tokens", "60"} + more)).out;
  }
  void refuse(const Arguments& more, const std::vector<std::string>& words) const {
    require_refused(run_maki(Arguments{"generate", path} + more), 2, words);
  }
};

}  // namespace

TEST_CASE("every option of sampling changes the text, and a file of prompts gets the same texts") {
  const SampledRun run;
  const Arguments prompt = {"--prompt", "the "}, warm = {"--temperature", "1.5"};
  const std::string plain = run.generate(prompt + warm);
  const std::string file = run.folder.write("prompts.txt", "the \ns\n");
  for (const Arguments& option :
       {Arguments{"--min-p", "0.3"}, Arguments{"--repetition-penalty", "1.5"}, Arguments{"--frequency-penalty", "0.5"},
        Arguments{"--presence-penalty", "-1"}, Arguments{"--logit-bias", "e=5"}}) {
    INFO(option[0]);
    const std::string text = run.generate(prompt + warm + option);
    REQUIRE(text != plain);
    REQUIRE(run.generate(Arguments{"--prompts", file} + warm + option).starts_with(text + "\n---\ns"));
    const std::string samples = run.generate(prompt + warm + option + Arguments{"-n", "3"});
    REQUIRE(samples.starts_with(text));
  }
  for (const Arguments& off : {Arguments{"--min-p", "0"}, Arguments{"--repetition-penalty", "1"},
                               Arguments{"--frequency-penalty", "0"}, Arguments{"--presence-penalty", "0"}}) {
    REQUIRE(run.generate(prompt + warm + off) == plain);
  }
}

TEST_CASE("a token is biased by its text or by its id, and the last bias of a token holds") {
  const SampledRun run;
  const Arguments prompt = {"--prompt", "s", "--temperature", "1.5"};
  const json all = json_lines(run.generate(prompt + Arguments{"--json", "--logprobs", "0"})).at(0);
  for (const json& token : all.at("logprobs")) {
    const std::string text = token.at("token"), id = std::to_string(token.at("id").get<int>());
    const std::string banned = run.generate(prompt + Arguments{"--logit-bias", text + "=-1e6"});
    REQUIRE(banned.find(text, 1) == std::string::npos);
    REQUIRE(run.generate(prompt + Arguments{"--logit-bias", id + "=-1000000"}) == banned);
    REQUIRE(run.generate(prompt + Arguments{"--logit-bias", id + "=9", "--logit-bias", text + "=-1e6"}) == banned);
  }
  const Arguments twice = {"--logit-bias", "e=-1e6", "--logit-bias", "e=0"};
  REQUIRE(run.generate(prompt + twice) == run.generate(prompt));
  REQUIRE(run.certain({"--temperature", "0", "--logit-bias", "e=1000000", "--prompt", "e"}) == std::string(61, 'e'));
  run.refuse({"--logit-bias", "the=1"}, {"logit-bias: must name one token; \"the\" is 3 tokens ("});
  for (const char* const entry : {"e", "=5"})
    run.refuse({"--logit-bias", entry}, {"must be ID=BIAS or TEXT=BIAS", std::string("got ") + entry});
  run.refuse({"--logit-bias", "=5"}, {"must be ID=BIAS or TEXT=BIAS", "got =5"});
  run.refuse({"--logit-bias", "e=x"}, {"logit-bias: must be a finite decimal number; got x"});
  run.refuse({"--logit-bias", "100=1"}, {"logit-bias: the id: must be between 0 and ", "got 100"});
  run.refuse({"--logit-bias", "Q=1"}, {"logit-bias: Q: ", "Q (U+0051)"});
}

TEST_CASE("with --logprobs, JSON has the log-probability of every token drawn and of the most likely ones") {
  const SampledRun run;
  const Arguments warm = {"--prompt", "the ", "--temperature", "2", "--json"};
  const json facts = json_lines(run.generate(warm + Arguments{"--logprobs", "1000"})).at(0);
  REQUIRE(facts.at("tokens") == 60);
  REQUIRE(facts.at("logprobs").size() == 60);
  std::string text;
  for (const json& token : facts.at("logprobs")) {
    text += token.at("token").get<std::string>();
    double sum = 0, before = 0;
    bool found = false;
    for (const json& top : token.at("top")) {
      REQUIRE(top.at("logprob").get<double>() <= before);
      before = top.at("logprob");
      sum += std::exp(before);
      if (top.at("id") == token.at("id")) found = top.at("logprob") == token.at("logprob");
    }
    REQUIRE(found);
    REQUIRE(sum == Approx(1).epsilon(1e-12));
  }
  REQUIRE(facts.at("text") == text);
  // They are those of the model, whatever the options of sampling are.
  const json biased = json_lines(run.generate(warm + Arguments{"--logprobs", "2", "--logit-bias", "e=1000000"})).at(0);
  const json& first = biased.at("logprobs").at(0);
  REQUIRE(first.at("token") == "e");
  REQUIRE(first.at("top").size() == 2);
  for (std::size_t i = 0; i < 2; ++i) REQUIRE(first.at("top").at(i) == facts.at("logprobs").at(0).at("top").at(i));
  REQUIRE_FALSE(json_lines(run.generate(warm)).at(0).contains("logprobs"));
  // Of a text that a stop string ends, all tokens drawn are reported, those of the string as well.
  const std::string stop = text.substr(20, 3);
  const json stopped = json_lines(run.generate(warm + Arguments{"--logprobs", "0", "--stop", stop})).at(0);
  REQUIRE(stopped.at("logprobs").size() == stopped.at("tokens").get<std::size_t>());
  // Each of several texts has its own.
  for (const json& sample : json_lines(run.generate(warm + Arguments{"--logprobs", "0", "-n", "20"}))) {
    std::string joined;
    for (const json& token : sample.at("logprobs")) joined += token.at("token").get<std::string>();
    REQUIRE(joined == sample.at("text").get<std::string>());
  }
}

TEST_CASE("options of sampling without an effect are refused") {
  const SampledRun run;
  for (const char* const option : {"top-k", "top-p", "min-p", "seed"}) {
    const std::string value = option == std::string("top-k") ? "3" : option == std::string("seed") ? "7" : "0.1";
    const std::string dashed = std::string("--") + option;
    run.refuse({dashed, value, "--temperature", "0"},
               {std::string(option) +
                ": has no effect with --temperature 0, which always chooses the most likely token; "
                "omit " +
                dashed + ", or --temperature 0"});
    if (dashed != "--top-k") run.refuse({dashed, value, "--top-k", "1"}, {"has no effect with --top-k 1"});
  }
  run.refuse({"--top-k", "1", "--temperature", "0"}, {"top-k: has no effect with --temperature 0"});
  REQUIRE(run.certain({"--temperature", "0", "--top-p", "1"}) == run.certain({"--top-k", "1"}));
  REQUIRE(run.generate({"--prompt", ""}) == run.generate({"--prompt", "\n"}).substr(1));  // a model of one text
  run.refuse({"--logprobs", "3"}, {"logprobs: are printed with --json only"});
  run.refuse({"--min-p", "2"}, {"min_p: must be between 0 and 1; got 2"});
  run.refuse({"--repetition-penalty", "0"}, {"repetition_penalty: must be between 0.01 and 100; got 0"});
  run.refuse({"--logprobs", "-1", "--json"}, {"logprobs: must be between 0 and 1000; got -1"});
}
