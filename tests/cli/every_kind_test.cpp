// What every kind of model promises, with every task that it can learn.
#include "tests/cli/every_kind.h"

#include <fmt/format.h>

#include "tests/catch.h"

using namespace maki::tests;

TEST_CASE("every kind of model: any split of a run and any number of threads give the same bytes") {
  const std::vector<SmallKind> kinds = every_kind();
  REQUIRE(kinds.size() >= 5);
  for (const SmallKind& kind : kinds) {
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string corpus = folder.write("corpus.txt", kind.corpus_text);
    const auto train = [&](const std::string& run, const char* steps, const char* threads) {
      require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", steps, "--threads", threads} +
                          kind.options));
    };
    train(folder / "straight", "60", "1");
    const std::string expected = read_text(checkpoint(folder / "straight", 60));
    REQUIRE(expected.size() > 10000);
    for (const auto& [cut, threads] : {std::pair{0, "8"}, {1, "2"}, {29, "3"}, {31, "1"}}) {
      INFO("stopped after step " << cut);
      const std::string run = folder / fmt::format("cut-{}", cut);
      train(run, std::to_string(cut).c_str(), threads);
      require_ok(run_maki({"train", "--resume", run, "--max-steps", "60", "--threads", "2"}));
      REQUIRE(read_text(checkpoint(run, 60)) == expected);
    }
    require_ok(run_maki({"inspect", folder / "cut-29", "--verify"}));
  }
}

TEST_CASE("every kind of model passes the gradient check and the benchmark") {
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const Arguments model = {"--model", kind.model, "--task", kind.task, "--n-layer", "1", "--n-embd", "16"};
    require_ok(run_maki(Arguments{"gradcheck"} + model));
    require_ok(run_maki(Arguments{"bench", "--steps", "2"} + model));
  }
}
