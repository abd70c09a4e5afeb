// --weights int8: texts, losses and pages of a model whose weights are rounded to 8 bits as it is read.
#include <cmath>

#include "tests/cli/every_kind.h"
#include "tests/cli/http_client.h"
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

const Arguments kInt8 = {"--weights", "int8"};

std::vector<json> continued(const std::string& run, const Arguments& more) {
  std::vector<json> texts = json_lines(
      require_ok(run_maki(Arguments{"generate", run, "--json", "--seed", "3", "--max-tokens", "40"} + more)).out);
  for (json& text : texts) text.erase("tokens_per_second");
  return texts;
}

json evaluated(const std::string& run, const Arguments& more) {
  return json::parse(require_ok(run_maki(Arguments{"eval", run, "--json"} + more)).out);
}

}  // namespace

TEST_CASE("texts of rounded weights depend neither on threads nor on how many are written at once") {
  const TrainedRun run;
  const Arguments options = {"--prompt", "the maki keeps", "--logprobs", "1"};
  const std::vector<json> one = continued(run.path, options + kInt8);
  REQUIRE(continued(run.path, options + kInt8 + Arguments{"--threads", "3"}) == one);
  REQUIRE(continued(run.path, options + kInt8 + Arguments{"-n", "5"}).at(0) == one.at(0));
  const std::vector<json> trained = continued(run.path, options);
  REQUIRE(continued(run.path, options + Arguments{"--weights", "trained"}) == trained);
  const double rounded = one[0]["logprobs"][0]["logprob"], exact = trained[0]["logprobs"][0]["logprob"];
  REQUIRE(rounded != exact);
  REQUIRE(std::abs(rounded - exact) < 0.05);
}

TEST_CASE("every kind of model is evaluated with rounded weights: a loss near that of the trained ones") {
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string corpus = folder.write("corpus.txt", kind.corpus_text), run = folder / "run";
    require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "20"} + kind.options));
    const double exact = evaluated(run, {}).at("val_loss"), rounded = evaluated(run, kInt8).at("val_loss");
    REQUIRE(rounded != exact);
    REQUIRE(std::abs(rounded - exact) < 0.02);
    const json again = evaluated(run, kInt8 + Arguments{"--threads", "3"});
    REQUIRE((again.at("val_loss") == rounded && again.at("weights") == "int8"));
  }
}

TEST_CASE("a frozen network and one with adapters are read with rounded weights") {
  const TrainedRun run;
  const std::string corpus = run.folder.write("other.txt", small_text()), tuned = run.folder / "tuned";
  require_ok(
      run_maki({"train", corpus, "--init-from", run.path, "--lora-rank", "2", "--max-steps", "5", "--out", tuned}));
  const double exact = evaluated(tuned, {}).at("val_loss"), rounded = evaluated(tuned, kInt8).at("val_loss");
  REQUIRE(rounded != exact);
  REQUIRE(std::abs(rounded - exact) < 0.02);
}

TEST_CASE("a server with rounded weights writes what generate writes with them") {
  const TrainedRun run;
  const json expected = continued(run.path, Arguments{"--prompt", "the ", "--logprobs", "1"} + kInt8).at(0);
  const Finished ended = serve(Arguments{run.path} + kInt8, [&](int port, const std::string&) {
    const json body{{"model", "run"}, {"prompt", "the "}, {"max_tokens", 40},
                    {"seed", 3},      {"logprobs", 1},    {"temperature", 0.8}};
    const Reply reply = complete(port, body);
    REQUIRE(reply.status == 200);
    const json choice = reply.json().at("choices").at(0);
    REQUIRE(choice.at("text") == expected.at("text"));
    REQUIRE(choice["logprobs"]["token_logprobs"][0] == expected["logprobs"][0]["logprob"]);
  });
  REQUIRE(ended.exit_code == 0);
}

TEST_CASE("rounded weights are refused where they would have no effect, and numbers that are not float32") {
  const TrainedRun run;
  const std::string corpus = run.folder.write("other.txt", small_text()), wide = run.folder / "wide";
  require_refused(run_maki({"generate", run.path, "--weights", "int4"}), 2,
                  {"weights: must be trained or int8; got int4"});
  require_refused(run_maki({"serve", run.path, "--weights", "int4"}), 2,
                  {"weights: must be trained or int8; got int4"});
  for (const char* verb : {"generate", "eval"}) {
    require_refused(run_maki(Arguments{verb, run.path, "--adapt"} + kInt8), 2,
                    {"--adapt changes the weights", "omit one"});
  }
  require_ok(run_maki(Arguments{"train", corpus, "--out", wide, "--max-steps", "2", "--dtype", "float64"} + kSmall));
  require_refused(run_maki(Arguments{"generate", wide} + kInt8), 2, {"type float64", "omit --weights"});
  serve(Arguments{wide} + kInt8, [&](int port, const std::string&) {
    const Reply refused = complete(port, {{"model", "wide"}});
    REQUIRE(refused.status == 400);
    REQUIRE_THAT(refused.body, ContainsSubstring("type float64") && ContainsSubstring("omit --weights"));
    REQUIRE(request(port, "GET", "/api/report?run=wide").status == 200);  // needs no model
  });
}
