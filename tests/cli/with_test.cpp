// --with: several runs that predict as one.
#include "tests/cli/every_kind.h"
#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

// Two runs that differ in their seeds alone.
struct TwoRuns {
  explicit TwoRuns(const SmallKind& kind) {
    const std::string corpus = folder.write("corpus.txt", kind.corpus_text);
    for (const char* const seed : {"1", "2"}) {
      runs.push_back(folder / seed);
      require_ok(run_maki(Arguments{"train", corpus, "--out", runs.back(), "--max-steps", "20", "--seed", seed} +
                          kind.options));
    }
  }
  TemporaryFolder folder;
  std::vector<std::string> runs;
};

json evaluated(const Arguments& arguments) {
  return json::parse(require_ok(run_maki(Arguments{"eval", "--json"} + arguments)).out);
}

json continued(const Arguments& arguments) {
  json text = json_lines(require_ok(run_maki(Arguments{"generate", "--json", "--seed", "3", "--max-tokens", "30",
                                                       "--prompt", "the maki keeps", "--logprobs", "1"} +
                                             arguments))
                             .out)
                  .at(0);
  text.erase("tokens_per_second");
  return text;
}

}  // namespace

TEST_CASE("two runs together lose less than in the mean, whichever is named first, and write texts of their own") {
  for (const SmallKind& kind : every_kind()) {
    if (kind.task == "masked" || kind.task == "classify") continue;  // these write nothing
    INFO(kind.name());
    const TwoRuns two(kind);
    const std::string &a = two.runs[0], &b = two.runs[1];
    const double one = evaluated({a}).at("val_loss"), other = evaluated({b}).at("val_loss");
    const json both = evaluated({a, "--with", b});
    REQUIRE(both.at("with") == json::array({b}));
    REQUIRE(both.at("val_loss") < (one + other) / 2);
    REQUIRE(evaluated({b, "--with", a}).at("val_loss") == Approx(both.at("val_loss").get<double>()).epsilon(1e-6));
    REQUIRE(evaluated({a, "--with", a}).at("val_loss") == Approx(one).epsilon(1e-6));
    REQUIRE(evaluated({a, "--with", b, "--threads", "3"}) == both);
    if (kind.task != "next_token") continue;
    const json text = continued({a, "--with", b});
    REQUIRE(continued({a, "--with", b, "--threads", "3"}) == text);
    REQUIRE(continued({a}) != text);
    REQUIRE(continued({b}) != text);
  }
}

TEST_CASE("runs of other contexts, counts and types of number predict as one, whichever is named first") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  std::vector<std::string> runs;
  for (const Arguments& of_its_own : {Arguments{"--block-size", "16"},
                                      {"--block-size", "16", "--ngram-prior", "3"},
                                      {"--block-size", "16", "--ngram-prior", "2", "--dtype", "float64"},
                                      {"--positions", "learned", "--block-size", "12"}}) {
    runs.push_back(folder / std::to_string(runs.size()));
    require_ok(run_maki(Arguments{"train", corpus, "--out", runs.back(), "--max-steps", "5"} +
                        without("--block-size", kSmall) + of_its_own));
  }
  for (const std::string& a : runs) {
    for (const std::string& b : runs) {
      INFO(a << " and " << b);
      const double loss = evaluated({a, "--with", b}).at("val_loss");
      REQUIRE(evaluated({b, "--with", a}).at("val_loss") == Approx(loss).epsilon(1e-6));
      // A prior sees what is before a window, whichever model it belongs to.
      if (a == b) REQUIRE(evaluated({a}).at("val_loss") == Approx(loss).epsilon(1e-6));
      REQUIRE(continued({a, "--with", b}).at("text") != "");
    }
  }
  const double all = evaluated({runs[0], "--with", runs[1], "--with", runs[2]}).at("val_loss");
  REQUIRE(evaluated({runs[2], "--with", runs[0], "--with", runs[1]}).at("val_loss") == Approx(all).epsilon(1e-6));
}

TEST_CASE("runs that cannot predict as one are refused: exit 2") {
  const TwoRuns two(every_kind().front());
  const std::string &a = two.runs[0], &b = two.runs[1];
  const std::string other = two.folder / "other", corpus = two.folder.write("other.txt", small_japanese_text());
  require_ok(run_maki(Arguments{"train", corpus, "--out", other, "--max-steps", "2"} + kSmall));
  for (const std::string verb : {"eval", "generate"}) {
    require_refused(run_maki({verb, a, "--with", other}), 2, {other, "has other tokens than", a});
    require_refused(run_maki({verb, a, "--with", b, "--adapt"}), 2, {"--adapt", "--with", "omit one"});
    require_refused(run_maki({verb, a, "--with", two.folder / "none"}), 2, {two.folder / "none"});
  }
}
