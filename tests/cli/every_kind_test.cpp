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

TEST_CASE("every kind of model with n-gram tables: a resume, other threads and micro-batches change no byte") {
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string corpus = folder.write("corpus.txt", kind.corpus_text), run = folder / "cut";
    const auto train = [&](const std::string& out, const char* steps, const char* threads) {
      require_ok(run_maki(Arguments{"train", corpus, "--out", out, "--max-steps", steps, "--threads", threads,
                                    "--ngram-orders", "2,4", "--ngram-rows", "500", "--ngram-dropout", "0.1",
                                    "--grad-accum", "3"} +
                          kind.options));
    };
    train(folder / "straight", "60", "1");
    train(run, "29", "3");
    require_ok(run_maki({"inspect", run, "--verify"}));
    require_ok(run_maki({"gradcheck", run}));
    require_ok(run_maki({"train", "--resume", run, "--max-steps", "60"}));
    REQUIRE(read_text(checkpoint(run, 60)) == read_text(checkpoint(folder / "straight", 60)));
  }
}

TEST_CASE("every kind of model that continues texts: prompts of a file are continued as they are alone") {
  const std::vector<std::string> prompts = {"the maki", "the tape", "s", "", "the maki keeps and", "the reel", "a"};
  int kinds = 0;
  for (const SmallKind& kind : every_kind()) {
    if (kind.task != "next_token") continue;
    ++kinds;
    INFO(kind.name());
    const TemporaryFolder folder;
    const std::string run = folder / "run";
    require_ok(
        run_maki(Arguments{"train", folder.write("corpus.txt", kind.corpus_text), "--out", run, "--max-steps", "30"} +
                 kind.options));
    const Arguments generate = {"generate", run, "--seed", "3", "--max-tokens", "60"};
    std::string lines, joined;
    for (const std::string& prompt : prompts) {
      const Finished alone = run_maki(generate + Arguments{"--prompt", prompt});
      REQUIRE(alone.exit_code == 0);
      joined += (joined.empty() ? "" : joined.ends_with('\n') ? "---\n" : "\n---\n") + alone.out;
      lines += prompt + "\n";
    }
    REQUIRE(run_maki(generate + Arguments{"--prompts", folder.write("prompts.txt", lines)}).out == joined);
  }
  REQUIRE(kinds >= 3);
}

TEST_CASE("every kind of model passes the gradient check and the benchmark") {
  for (const SmallKind& kind : every_kind()) {
    INFO(kind.name());
    const Arguments model = {"--model", kind.model, "--task", kind.task, "--n-layer", "1", "--n-embd", "16"};
    require_ok(run_maki(Arguments{"gradcheck"} + model));
    require_ok(run_maki(Arguments{"bench", "--steps", "2"} + model));
  }
}
