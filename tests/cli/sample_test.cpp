// The sample texts of a training run: on the terminal, in metrics.jsonl, and without influence on the run.
#include "tests/cli/require_refused.h"
#include "tests/metrics_lines.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

std::vector<json> samples_of(const std::string& run) { return metrics_lines(run + "/metrics.jsonl", "sample"); }

Finished trained(const Arguments& arguments) {
  const Finished finished = run_maki(Arguments{"train"} + arguments);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished;
}

}  // namespace

TEST_CASE("a training run writes sample texts, which do not affect it and are the same after a resume") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), with = folder / "with",
                    silent = folder / "silent", resumed = folder / "resumed";
  const Arguments small = kSmall + Arguments{"--sample-interval", "10", "--max-steps"};
  const Finished shown = trained(Arguments{corpus, "--out", with} + small + Arguments{"30"});
  const Finished none = trained(Arguments{corpus, "--out", silent} + small + Arguments{"30", "--sample-interval", "0"});
  trained(Arguments{corpus, "--out", resumed} + small + Arguments{"20"} + Arguments{"--threads", "1"});
  trained({"--resume", resumed, "--max-steps", "30"});

  const std::vector<json> samples = samples_of(with);
  REQUIRE(samples.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(samples[i].at("step") == 10 * (i + 1));
    REQUIRE(samples[i].at("text").get<std::string>().size() >= 50);
    REQUIRE_THAT(shown.err,
                 ContainsSubstring("step " + std::to_string(10 * (i + 1)) + ": sample of generated text:\n  | "));
  }
  REQUIRE(samples[0].at("text") != samples[1].at("text"));
  REQUIRE(samples_of(silent).empty());
  REQUIRE_THAT(none.err, !ContainsSubstring("sample of generated text"));
  REQUIRE(samples_of(resumed) == samples);
  REQUIRE(read_text(checkpoint(silent, 30)) == read_text(checkpoint(with, 30)));
  REQUIRE(read_text(checkpoint(resumed, 30)) == read_text(checkpoint(with, 30)));
  require_refused(run_maki({"train", corpus, "--sample-interval", "-1"}), 2,
                  {"sample_interval: must be between 0 and"});
}
