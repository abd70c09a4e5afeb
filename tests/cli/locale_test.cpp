// The locale of a user, with its decimal commas and its dotless i, changes nothing of a run. Where it is not installed,
// only its name is tried.
#include "tests/cli/small_run.h"
#include "tests/metrics_lines.h"

using namespace maki::tests;

TEST_CASE("a run has the same weights and measurements, and its settings are read alike, in every locale") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text() + "ıİiI 1,5 1.5\n");
  const std::string config = folder.write("config.toml", "learning_rate = 0.0125\nactivation = 'swiglu'\n");
  std::string expected, reported;
  for (const std::string name : {"C", "de_DE.UTF-8", "tr_TR.UTF-8"}) {
    INFO(name);
    const std::string run = folder / name;
    RunOptions options;
    options.environment = {"LC_ALL=" + name};
    require_ok(run_maki(Arguments{"train", corpus, "--config", config, "--out", run, "--max-steps", "12"} +
                            without("--learning-rate", kSmall),
                        options));
    const std::string bytes = read_text(checkpoint(run, 12));
    const std::string lines = measured(read_text(run + "/metrics.jsonl"));
    REQUIRE(bytes.size() > 10000);
    REQUIRE_THAT(lines, ContainsSubstring(R"("kind":"train")") && ContainsSubstring(R"("kind":"eval")"));
    REQUIRE((expected.empty() || bytes == expected));
    REQUIRE((reported.empty() || lines == reported));
    expected = bytes;
    reported = lines;
  }
}
