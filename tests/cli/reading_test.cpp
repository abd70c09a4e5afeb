// How the text of a run is read by the verbs that take another text, and text with which nothing can be done.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

std::string json_lines_of(const std::string& text) {
  std::string lines;
  for (std::size_t at = 0; at < text.size(); at += 120)
    lines += json{{"id", at}, {"text", text.substr(at, 120)}}.dump() + "\n";
  return lines;
}

json measured(const Arguments& more) {
  return json::parse(require_ok(run_maki(Arguments{"eval"} + more + Arguments{"--json"})).out);
}

}  // namespace

TEST_CASE("another text is read as the text of the run was, unless options say otherwise") {
  const TemporaryFolder folder;
  const std::string lines = json_lines_of(small_text()), corpus = folder.write("a.jsonl", lines), run = folder / "run",
                    other = folder.write("b.jsonl", lines.substr(0, lines.size() / 2 / 150 * 150) + "\n"),
                    first = lines.substr(0, lines.find('\n') + 1), one = folder.write("one.jsonl", first),
                    plain = folder.write("plain.txt", small_text().substr(0, 600));
  require_ok(train(folder, corpus, {"--json-field", "text"}));
  const Finished said = require_ok(run_maki({"eval", run, one}));
  REQUIRE_THAT(said.err, ContainsSubstring(one + ": is read as the text of " + run + " was, with json_field = 'text'"));
  REQUIRE(measured({run, one}) == measured({run, one, "--json-field", "text"}));
  REQUIRE(measured({run, one}).at("targets") == 119);
  require_refused(run_maki({"eval", run, plain}), 3, {"plain.txt: line 1 is not JSON"});
  REQUIRE(measured({run, plain, "--json-field", ""}).at("targets") == 599);
  REQUIRE(measured({run, plain, "--document-separator", "==="}).at("targets") == 599);
  REQUIRE(measured({run, "@stories:900", "--unknown", "skip"}).at("targets").get<int>() > 500);
  // So is the text of a run that begins with its weights, as long as its task reads running text.
  const Arguments tune = Arguments{"--init-from", run, "--max-steps", "1"};
  REQUIRE_THAT(require_ok(run_maki(Arguments{"train", corpus, "--out", folder / "tuned"} + tune)).err,
               ContainsSubstring(corpus + ": is read as the text of " + run + " was, with json_field = 'text'"));
  REQUIRE_THAT(read_text(folder / "tuned/config.toml"), ContainsSubstring("json_field = 'text'"));
  require_ok(run_maki(
      Arguments{"train", folder.write("c.txt", small_text()), "--out", folder / "on plain", "--json-field", ""} +
      tune));
}

TEST_CASE("how to read another text otherwise is said in options that exist") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", part = small_text().substr(0, 300), other = folder.write("other.txt", part);
  for (const char* const name : {"texts/a.txt", "texts/b.txt", "texts/c.txt"}) folder.write(name, small_text());
  require_ok(train(folder, folder / "texts", {"--documents", "--val-fraction", "0.4"}));
  REQUIRE_THAT(require_ok(run_maki({"eval", run, other})).err,
               ContainsSubstring("with documents = true; to read it otherwise: --no-documents\n"));
  REQUIRE(require_ok(run_maki({"eval", run, other, "--no-documents"})).err.find("is read as") == std::string::npos);

  const std::string chosen = folder / "chosen", more = folder / "more";
  require_ok(run_maki(Arguments{"train", folder / "texts", "--include", "*.txt", "--exclude", "c.*", "--max-steps", "1",
                                "--out", chosen} +
                      kSmall));
  for (const char* const name : {"more/a.txt", "more/b.md", "more/c.txt"}) folder.write(name, part);
  REQUIRE_THAT(require_ok(run_maki({"eval", chosen, more})).err,
               ContainsSubstring("to read it otherwise: --include '*' --exclude '.*'\n"));
  REQUIRE(measured({chosen, more, "--include", "*", "--exclude", ".*"}).at("targets") >
          2 * measured({chosen, more}).at("targets").get<int>());
}

TEST_CASE("eval and a resume of a run whose text has changed say that it is not the text") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  require_ok(train(folder, corpus));
  folder.write("corpus.txt", small_text() + "the reel.\n");
  require_refused(run_maki({"eval", folder / "run"}), 3, {"is not the text of this run", "name it as CORPUS"});
  require_refused(run_maki({"train", "--resume", folder / "run", "--max-steps", "99"}), 3,
                  {"is not the text of this run", "restore it, or start a new run"});
  REQUIRE(measured({folder / "run", corpus}).at("part") == "whole");
}

TEST_CASE("eval of a text with nothing to predict names the text: exit 3, whatever is measured") {
  const TemporaryFolder folder;
  const std::string unknown = folder.write("unknown.txt", "猫猫猫"), empty = folder.write("empty.txt", "");
  require_ok(train(folder, folder.write("corpus.txt", small_text())));
  for (const Arguments& more :
       {Arguments{}, Arguments{"--stride", "4"}, Arguments{"--by-position"}, Arguments{"--adapt"}})
    require_refused(run_maki(Arguments{"eval", folder / "run", unknown, "--unknown", "skip"} + more), 3,
                    {unknown + ": has nothing to predict"});
  require_refused(run_maki({"eval", folder / "run", folder.write("one.txt", "a")}), 3,
                  {"one.txt: has nothing to predict", "the text has 1"});
  require_refused(run_maki({"eval", folder / "run", empty}), 3, {empty + ": is empty; name a file that contains text"});
  require_ok(run_maki(
      Arguments{"train", folder / "corpus.txt", "--out", folder / "masked", "--model", "encoder", "--max-steps", "1"} +
      kSmall));
  require_refused(run_maki({"eval", folder / "masked", unknown, "--unknown", "skip"}), 3, {"has nothing to predict"});
}

TEST_CASE("answers of classify and translations stay beside their lines, also of those without a known character") {
  const TemporaryFolder folder;
  std::string labels, pairs;
  for (int i = 0; i < 40; ++i) {
    labels += fmt::format("tape {}\t{}\n", i % 7, i % 2 == 0 ? "film" : "ribbon");
    pairs += fmt::format("tape {}\treel {}\n", i % 7, i % 7);
  }
  const Arguments two_steps = kSmall + Arguments{"--max-steps", "2"};
  require_ok(run_maki(Arguments{"train", folder.write("l.tsv", labels), "--out", folder / "labels", "--model",
                                "encoder", "--task", "classify"} +
                      two_steps));
  require_ok(run_maki(
      Arguments{"train", folder.write("p.tsv", pairs), "--out", folder / "pairs", "--model", "seq2seq"} + two_steps));
  const RunOptions input{.input = "tape 1\n\n猫\ntape 2\n"};
  const Finished classified = require_ok(run_maki({"classify", folder / "labels", "--unknown", "skip"}, input));
  REQUIRE_THAT(classified.out, Catch::Matchers::Matches("[a-z]+\t[^\n]*\ttape 1\n\n\n[a-z]+\t[^\n]*\ttape 2\n"));
  REQUIRE_THAT(classified.err, ContainsSubstring("line 2: has no token") && ContainsSubstring("line 3: has no token"));
  const std::string lines =
      require_ok(run_maki({"classify", folder / "labels", "--unknown", "skip", "--json"}, input)).out;
  REQUIRE(std::ranges::count(lines, '\n') == 4);
  REQUIRE_THAT(lines, ContainsSubstring(R"("text":"","label":null,"probabilities":{}})"));
  for (const Arguments& more : {Arguments{}, Arguments{"--json"}}) {
    const std::string translated =
        require_ok(run_maki(Arguments{"generate", folder / "pairs", "--unknown", "skip"} + more, input)).out;
    REQUIRE(std::ranges::count(translated, '\n') == 4);
  }
}

TEST_CASE("token files of nanoGPT bring their vocabulary in meta.pkl") {
  const TemporaryFolder folder;
  std::string ids;
  for (int i = 0; i < 900; ++i) (ids += static_cast<char>(i * i % 17)) += '\0';
  folder.write("set/train.bin", ids);
  folder.write("set/val.bin", ids.substr(0, 400));
  folder.write("set/meta.pkl", read_bytes(MAKI_SOURCE_DIR "/tests/fixtures/nanogpt_meta_4.pkl"));
  REQUIRE_THAT(require_ok(train(folder, folder / "set")).err,
               ContainsSubstring("vocabulary of 18; 900 tokens for training, 200"));
  require_refused(
      run_maki(Arguments{"train", folder / "set", "--val-fraction", "0.2", "--out", folder / "no"} + kSmall), 2,
      {"--val-fraction"});
  require_refused(run_maki({"eval", folder / "run", folder / "set", "--json-field", "text"}), 2,
                  {"json_field", "it is tokens"});
}
