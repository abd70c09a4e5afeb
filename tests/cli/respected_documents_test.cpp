// --respect-documents as a user sees it: the same bytes from text and tokens, at any number of threads and in parts;
// evaluation of the same sequences; what is refused.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/json_lines.h"
#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

// Documents of up to 300 characters, as JSON lines.
std::string small_documents() {
  const std::string text = small_text();
  std::string lines;
  for (std::size_t i = 0, at = 0; at < text.size(); ++i) {
    const std::size_t length = 7 + i * 59 % 300;
    lines += json{{"text", text.substr(at, length)}}.dump() + "\n";
    at += length;
  }
  return lines;
}

}  // namespace

TEST_CASE("respected documents give the same bytes from text and tokens, in parts, at any number of threads") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.jsonl", small_documents()), tokens = folder / "tokens";
  const Arguments bpe = {"--tokenizer", "bpe", "--vocab-size", "300"}, field = {"--json-field", "text"};
  require_ok(run_maki(Arguments{"prepare", corpus, "--out", tokens} + bpe + field));
  for (const Arguments& kind : {Arguments{"--ngram-orders", "2"}, Arguments{"--ngram-prior", "3"}}) {
    const Arguments options = kSmall + kind + Arguments{"--respect-documents"};
    const auto name = [&](const char* what) { return folder / (what + kind[0]); };
    const auto begun =
        require_ok(run_maki(Arguments{"train", corpus, "--out", name("text"), "--max-steps", "30", "--threads", "1"} +
                            options + bpe + field));
    REQUIRE_THAT(begun.err, ContainsSubstring("sequences for training, of which ") &&
                                ContainsSubstring("% is filling") && ContainsSubstring("30 steps of 9 sequences"));
    require_ok(
        run_maki(Arguments{"train", tokens, "--out", name("cut"), "--max-steps", "13", "--threads", "3"} + options));
    require_ok(run_maki({"train", "--resume", name("cut"), "--max-steps", "30", "--threads", "2"}));
    const std::string bytes = read_text(checkpoint(name("text"), 30));
    REQUIRE(bytes.size() > 10000);
    REQUIRE(read_text(checkpoint(name("cut"), 30)) == bytes);
    require_ok(run_maki(Arguments{"train", tokens, "--out", name("crossing"), "--max-steps", "30"} + kSmall + kind));
    REQUIRE(read_text(checkpoint(name("crossing"), 30)) != bytes);
    // These are the sequences of training, which has evaluated the whole validation text at its end.
    const json facts = json::parse(require_ok(run_maki({"eval", name("text"), "--checkpoint", "last", "--json"})).out);
    double last = 0, tokens_read = 0;
    for (const json& line : json_lines(read_text(name("text") + "/metrics.jsonl"))) {
      if (line.at("kind") == "eval") last = line.at("val_loss");
      if (line.at("kind") == "train") tokens_read = line.at("tokens");
    }
    REQUIRE(facts.at("val_loss") == last);
    REQUIRE(tokens_read < 30 * 9 * 16);
    require_ok(run_maki({"generate", name("cut"), "--max-tokens", "20"}));
    require_ok(run_maki({"gradcheck", name("cut")}));
  }
}

TEST_CASE("documents are respected where there are any") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  const Arguments train = Arguments{"train", corpus, "--out", run, "--max-steps", "2", "--respect-documents"} + kSmall;
  require_refused(run_maki(train), 3, {"respect_documents: ", "corpus.txt does not say where its documents end"});
  require_refused(run_maki(train + Arguments{"--model", "transformer-xl", "--documents"}), 2, {"respect_documents: "});
  require_ok(run_maki({"prepare", corpus, "--out", folder / "tokens"}));
  require_refused(
      run_maki(Arguments{"train", folder / "tokens", "--out", run, "--max-steps", "2", "--respect-documents"} + kSmall),
      3, {"respect_documents: ", "tokens does not say where its documents end"});
}

TEST_CASE("the end-of-text tokens of another program's token files end documents") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.jsonl", small_documents()), out = folder / "tokens";
  const Arguments tokenizer = {"--tokenizer-file", folder / "t.json"};
  require_ok(run_maki({"tokenizer", "train", corpus, "--out", folder / "t.json", "--vocab-size", "300"}));
  require_ok(
      run_maki(Arguments{"prepare", corpus, "--json-field", "text", "--format", "llm.c", "--out", out} + tokenizer));
  const Arguments train =
      Arguments{"train", out, "--out", folder / "run", "--max-steps", "2", "--respect-documents"} + kSmall + tokenizer;
  const std::size_t documents = json_lines(read_text(corpus)).size();
  REQUIRE_THAT(require_ok(run_maki(train)).err, ContainsSubstring(fmt::format("; {} documents; ", documents)));
}
