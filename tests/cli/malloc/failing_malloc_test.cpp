// Memory that runs out anywhere, also in functions of libraries that must not throw and while an error is reported.
#include <filesystem>

#include "tests/cli/small_run.h"

using namespace maki::tests;

TEST_CASE("wherever memory runs out for good, the end is a sentence and an exit code, not a signal") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Arguments training = {"train",        corpus, "--out",        run, "--n-layer",    "1", "--n-head",  "1",
                              "--n-embd",     "8",    "--max-steps",  "2", "--block-size", "8", "--threads", "1",
                              "--batch-size", "1",    "--no-counting"};
  for (const Arguments& arguments : {training, Arguments{"inspect", run}, Arguments{"frobnicate", run}}) {
    int exit_code = 2, failures = 0;
    for (int calls = 0; exit_code != 0 && calls < 1'000'000; calls += 1 + calls / 2, ++failures) {
      if (arguments[0] == "train") std::filesystem::remove_all(run);
      RunOptions options;
      options.environment = {"LD_PRELOAD=" MAKI_FAILING_MALLOC, "MAKI_TEST_MALLOCS=" + std::to_string(calls)};
      const Finished finished = run_maki(arguments, options);
      INFO(arguments[0] << ", after " << calls << " calls: " << finished.err);
      exit_code = finished.exit_code;
      REQUIRE(exit_code < 128);
      REQUIRE((exit_code == 0 || !finished.err.empty()));
      // The exit code is 0 only once everything has been done.
      if (exit_code == 0 && arguments[0] == "train") REQUIRE_THAT(finished.err, ContainsSubstring("done: 2 steps"));
      if (exit_code == 0 && arguments[0] == "inspect") REQUIRE_THAT(finished.out, ContainsSubstring("n_embd"));
    }
    REQUIRE(failures > 5);
    REQUIRE((exit_code == 0 || arguments[0] == "frobnicate"));
  }
}
