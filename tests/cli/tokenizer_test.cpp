// maki tokenizer, and runs with byte-level BPE: training, resuming, a tokenizer file, normalization.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

RunOptions with_input(const std::string& text) {
  RunOptions options;
  options.input = text;
  return options;
}

// Trains a tokenizer of at most 300 tokens.
std::string trained_tokenizer(const TemporaryFolder& folder, const std::string& text, const Arguments& more = {}) {
  const std::string corpus = folder.write("corpus.txt", text), out = folder / "tokenizer.json";
  require_ok(run_maki(Arguments{"tokenizer", "train", corpus, "--out", out, "--vocab-size", "300"} + more));
  return out;
}

std::string tokenizer_hash(const std::string& path) {
  return json::parse(require_ok(run_maki({"tokenizer", "inspect", path, "--json"})).out)["hash"];
}

}  // namespace

TEST_CASE("maki tokenizer trains, encodes, decodes and inspects") {
  const TemporaryFolder folder;
  const std::string tokenizer = trained_tokenizer(folder, small_text() + "終わり。\n");
  const json facts = json::parse(require_ok(run_maki({"tokenizer", "inspect", tokenizer, "--json"})).out);
  REQUIRE(facts["kind"] == "bpe");
  REQUIRE(facts["vocab_size"] == 300);
  REQUIRE(facts["merges"] == 43);
  REQUIRE(facts["special"] == json{{"<|endoftext|>", 299}});
  REQUIRE(facts["end_of_text"] == 299);
  REQUIRE_THAT(require_ok(run_maki({"tokenizer", "inspect", tokenizer})).out,
               ContainsSubstring("bpe") && ContainsSubstring("299") && ContainsSubstring(facts["hash"]));

  const std::string text = small_text() + "\n終わり。\xFF<|endoftext|>";
  const Finished ids = require_ok(run_maki({"tokenizer", "encode", tokenizer}, with_input(text)));
  REQUIRE(ids.out.ends_with("\n"));
  REQUIRE(require_ok(run_maki({"tokenizer", "decode", tokenizer}, with_input(ids.out))).out == text);
  const json encoded =
      json::parse(require_ok(run_maki({"tokenizer", "encode", tokenizer, "--json"}, with_input(text))).out);
  REQUIRE(encoded["bytes"] == text.size());
  REQUIRE(encoded["tokens"] == encoded["ids"].size());
  REQUIRE(encoded["tokens"] < text.size() / 2);
  std::string joined;
  for (const json& id : encoded["ids"]) joined += fmt::format("{}{}", joined.empty() ? "" : " ", id.get<int>());
  REQUIRE(ids.out == joined + "\n");
  REQUIRE_FALSE(ids.out.ends_with(" 299\n"));
  const Finished special = run_maki({"tokenizer", "encode", tokenizer, "--special"}, with_input(text));
  REQUIRE(special.out.ends_with(" 299\n"));
  REQUIRE(run_maki({"tokenizer", "decode", tokenizer}, with_input(special.out)).out == text);
}

TEST_CASE("maki tokenizer train says which special tokens of a text its vocabulary does not read") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text() + "<|endoftext|>\n" + small_text());
  const Arguments train = {"tokenizer", "train", corpus, "--vocab-size", "300", "--out"};
  REQUIRE_THAT(require_ok(run_maki(train + Arguments{folder / "a.json"})).err,
               ContainsSubstring("<|endoftext|> (1 time), read as ordinary characters") &&
                   ContainsSubstring("--document-separator"));
  const Arguments divided = {folder / "b.json", "--document-separator", "<|endoftext|>"};
  REQUIRE_THAT(require_ok(run_maki(train + divided)).err, !ContainsSubstring("<|endoftext|>"));
  const std::string inside = folder.write("inside.txt", small_text() + "end.<|endoftext|>\n" + small_text());
  const Arguments divide = {"--document-separator", "<|endoftext|>"};
  for (const Arguments& verb :
       {Arguments{"tokenizer", "train"}, Arguments{"prepare", "--tokenizer", "bpe", "--val-fraction", "0"}}) {
    const Arguments out = {inside, "--vocab-size", "300", "--force", "--out", folder / "d.json"};
    REQUIRE_THAT(require_ok(run_maki(verb + out + divide)).err,
                 ContainsSubstring("--document-separator divides documents only where it stands alone on its line"));
  }
  folder.write("d/1.txt", small_text() + "<|endof");
  folder.write("d/2.txt", "text|>" + small_text());
  const Arguments files = {"tokenizer", "train", folder / "d", "--vocab-size", "300", "--out", folder / "c.json"};
  REQUIRE_THAT(require_ok(run_maki(files)).err, !ContainsSubstring("<|endoftext|>"));
}

TEST_CASE("maki tokenizer encode refuses to find special tokens where the vocabulary has none") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  require_ok(train(folder, corpus));
  for (const Arguments& lines : {Arguments{}, Arguments{"--lines"}})
    require_refused(run_maki(Arguments{"tokenizer", "encode", run, "--special"} + lines, with_input("a\n")), 3,
                    {"special: needs a vocabulary with special tokens"});
}

TEST_CASE("maki tokenizer encode reads files of any length, and lines one by one") {
  const TemporaryFolder folder;
  const std::string tokenizer = trained_tokenizer(folder, small_text());
  std::string text;
  while (text.size() < 9'000'000) text += small_text();
  const std::string file = folder.write("long.txt", text);
  const Finished whole = require_ok(run_maki({"tokenizer", "encode", tokenizer, file, "--special"}));
  REQUIRE((require_ok(run_maki({"tokenizer", "encode", tokenizer, file})).out == whole.out));
  REQUIRE((require_ok(run_maki({"tokenizer", "encode", tokenizer, "-"}, with_input(text))).out == whole.out));
  const Finished lines = require_ok(run_maki({"tokenizer", "encode", tokenizer, "--lines"}, with_input("a\n\nb a")));
  const std::string a = run_maki({"tokenizer", "encode", tokenizer}, with_input("a")).out;
  REQUIRE(lines.out == a + "\n" + run_maki({"tokenizer", "encode", tokenizer}, with_input("b a")).out);
  std::string many, expected;  // more than are encoded at once
  for (int i = 0; i < 40'000; ++i) {
    many += i % 3 == 0 ? "a\n" : "\n";
    expected += i % 3 == 0 ? a : "\n";
  }
  const Arguments threads = {"tokenizer", "encode", tokenizer, "--lines", "--threads", "3"};
  REQUIRE((require_ok(run_maki(threads, with_input(many))).out == expected));
}

TEST_CASE("a user at a terminal is told to type a text that is read from standard input") {
  if (!has_terminals()) return;
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), tokenizer = folder / "tokenizer.json";
  require_ok(run_maki({"tokenizer", "train", corpus, "--vocab-size", "300", "--out", tokenizer}));
  RunOptions typed;
  typed.typed = "a text of some words, and of some more\n\x04";
  for (const Arguments& words :
       {Arguments{"tokenizer", "encode", tokenizer}, Arguments{"prepare", "-", "--out", folder / "tokens"},
        Arguments{"tokenizer", "train", "-", "--vocab-size", "300", "--out", folder / "other.json"}}) {
    INFO(words.front());
    REQUIRE_THAT(require_ok(run_maki(words, typed)).err,
                 ContainsSubstring("type the text, then press Enter and Ctrl-D"));
  }
  REQUIRE(require_ok(run_maki({"tokenizer", "encode", tokenizer, corpus})).err.empty());
}

TEST_CASE("maki tokenizer encode names what it cannot encode by its place in the whole text") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", corpus = folder.write("corpus.txt", small_text());
  require_ok(run_maki(Arguments{"train", corpus, "--out", run, "--max-steps", "0", "--lr-decay-steps", "1"}));
  std::string text;
  while (text.size() < 20'000) text += small_text();
  require_refused(run_maki({"tokenizer", "encode", run}, with_input(text + "\xFF")), 3,
                  {fmt::format("byte {}", text.size())});
  require_refused(run_maki({"tokenizer", "encode", run}, with_input("猫" + text + "犬")), 3, {"猫", "犬"});
  // Lines before it are printed.
  const Finished lines = run_maki({"tokenizer", "encode", run, "--lines"}, with_input("\n\n猫\n犬\n"));
  require_refused(lines, 3, {"line 3: ", "猫"});
  REQUIRE(lines.out == "\n\n");
}

TEST_CASE("a tokenizer of documents learns nothing across them, and lines are encoded as lines that stand alone") {
  const TemporaryFolder folder;
  std::string lines, pairs;
  for (int i = 0; i < 30; ++i) lines += "{\"t\": \"ab\"}\n{\"t\": \"cd\"}\n";
  const std::string jsonl = folder.write("d.jsonl", lines), tokens = folder / "t.json";
  const Finished trained =
      require_ok(run_maki({"tokenizer", "train", jsonl, "--json-field", "t", "--out", tokens, "--json"}));
  REQUIRE(json::parse(trained.out).at("tokens") == 60);
  REQUIRE(json::parse(trained.out).at("vocab_size") == 256 + 2 + 1);
  for (int i = 0; i < 20; ++i) pairs += "one two\tthree four\n";
  const std::string run = folder / "run";
  require_ok(run_maki({"train",
                       folder.write("p.tsv", pairs),
                       "--model",
                       "seq2seq",
                       "--tokenizer",
                       "word",
                       "--out",
                       run,
                       "--max-steps",
                       "0",
                       "--lr-decay-steps",
                       "1",
                       "--n-embd",
                       "16",
                       "--n-head",
                       "2",
                       "--block-size",
                       "16",
                       "--batch-size",
                       "2"}));
  const auto encoded = [&](const Arguments& more, const std::string& text) {
    return require_ok(run_maki(Arguments{"tokenizer", "encode", run, "--source"} + more, with_input(text))).out;
  };
  REQUIRE(encoded({"--lines"}, "one two\n") == encoded({}, " one two"));
}

TEST_CASE("a tokenizer is trained, and a corpus prepared, from those files of a directory that are named") {
  const TemporaryFolder folder;
  const std::string text = folder.write("d/a.txt", small_text()), some = folder / "some.json",
                    one = folder / "one.json";
  folder.write("d/b.md", "猫猫猫");
  const Arguments train = {"tokenizer", "train", "--vocab-size", "300"}, named = {folder / "d", "--include", "*.txt"};
  require_ok(run_maki(train + named + Arguments{"--out", some}));
  require_ok(run_maki(train + Arguments{text, "--out", one}));
  REQUIRE(tokenizer_hash(some) == tokenizer_hash(one));
  require_refused(run_maki(train + Arguments{text, "--include", "*.txt", "--out", folder / "none.json"}), 2,
                  {"include", "directory"});
  const auto characters = [&](const Arguments& corpus, const char* out) {
    return json::parse(require_ok(run_maki(Arguments{"prepare", "--json", "--out", folder / out} + corpus)).out)
        .at("characters");
  };
  REQUIRE(characters(named, "some") == small_text().size());
  REQUIRE(characters({folder / "d"}, "all") == small_text().size() + 3);
}

TEST_CASE("maki tokenizer refuses what it cannot do") {
  const TemporaryFolder folder;
  const std::string tokenizer = trained_tokenizer(folder, small_text());
  require_refused(run_maki({"tokenizer"}), 2, {"tokenizer"});
  require_refused(run_maki({"tokenizer", "decode", tokenizer}, with_input("5 x")), 3, {"whole numbers", "x"});
  require_refused(run_maki({"tokenizer", "decode", tokenizer}, with_input("300")), 3, {"[0, 300)", "300"});
  require_refused(run_maki({"tokenizer", "decode", tokenizer}, with_input("-1")), 3, {"-1"});
  require_refused(run_maki({"tokenizer", "encode", folder / "missing.json"}), 3, {"missing.json"});
  require_refused(run_maki({"tokenizer", "encode", folder.write("bad.json", "{")}), 3, {"bad.json", "JSON"});
  require_refused(run_maki({"tokenizer", "encode", tokenizer, "--lines", "--json"}), 2, {"--lines", "--json"});
  require_refused(run_maki({"tokenizer", "inspect", tokenizer, "--source"}), 2, {"source: ", "has only one"});
  const Arguments train = {"tokenizer", "train", folder / "corpus.txt", "--out", folder / "x.json"};
  require_refused(run_maki(train + Arguments{"--vocab-size", "256"}), 2, {"vocab_size", "257"});
  require_refused(run_maki(train + Arguments{"--normalize", "nfd"}), 2, {"normalize", "nfd"});
  require_refused(run_maki(train + Arguments{"--preset", "baby"}), 2, {"--preset", "maki tokenizer train"});
}

TEST_CASE("runs with byte-pair encoding learn, resume exactly and accept any text") {
  const TemporaryFolder folder;
  // The validation part has characters that the training part lacks.
  const std::string corpus =
      folder.write("corpus.txt", small_text() + small_text() + "終わり。" + std::string(50, '!'));
  const Arguments bpe = Arguments{"--tokenizer", "bpe", "--vocab-size", "290", "--block-size", "8"} + kSmall;
  const auto run = [&](const std::string& name, const std::string& steps) {
    return Arguments{"train", corpus, "--out", folder / name, "--max-steps", steps, "--lr-decay-steps", "20"} + bpe;
  };
  require_ok(run_maki(run("whole", "20")));
  require_ok(run_maki(run("parts", "10")));
  require_ok(run_maki({"train", "--resume", folder / "parts", "--max-steps", "20", "--threads", "1"}));
  REQUIRE(read_text(checkpoint(folder / "whole", 20)) == read_text(checkpoint(folder / "parts", 20)));
  REQUIRE_FALSE(read_text(checkpoint(folder / "whole", 20)).empty());
  REQUIRE_THAT(read_text(folder / "whole/config.toml"), ContainsSubstring("\nvocab_size = 290 "));
  require_ok(run_maki({"generate", folder / "whole", "--prompt", "犬も歩けば", "--max-tokens", "5"}));
  const Finished eval = require_ok(
      run_maki({"eval", folder / "whole", folder.write("other.txt", "別の文章です。Ω\n別の文章です。"), "--json"}));
  REQUIRE(json::parse(eval.out).contains("bits_per_byte"));
  REQUIRE(tokenizer_hash(folder / "whole") == tokenizer_hash(checkpoint(folder / "parts", 20)));
  // Without the number of steps, a run is planned.
  REQUIRE_THAT(
      require_ok(run_maki({"plan", corpus, "--minutes", "0.02", "--tokenizer", "bpe", "--vocab-size", "300"})).out,
      ContainsSubstring("passes over the training data"));
}

TEST_CASE("a run can use the tokenizer of a file") {
  const TemporaryFolder folder;
  const std::string tokenizer = trained_tokenizer(folder, small_text(), {"--normalize", "nfkc"});
  const std::string corpus = folder.write("other.txt", small_japanese_text());
  const Arguments given = {"--tokenizer-file", tokenizer};
  require_ok(train(folder, corpus, given));
  REQUIRE(tokenizer_hash(folder / "run") == tokenizer_hash(tokenizer));
  const std::string config = read_text(folder / "run/config.toml");
  REQUIRE_THAT(config, ContainsSubstring("\ntokenizer = 'bpe' ") && ContainsSubstring("\nvocab_size = 300 ") &&
                           ContainsSubstring("\nnormalize = 'nfkc' "));
  const std::string same = folder / "same";  // and that of a run
  require_ok(run_maki(Arguments{"train", corpus, "--out", same, "--max-steps", "0", "--lr-decay-steps", "1",
                                "--tokenizer-file", folder / "run"}));
  REQUIRE(tokenizer_hash(same) == tokenizer_hash(tokenizer));
  require_ok(run_maki({"train", "--resume", folder / "run", "--max-steps", "6"}));
  require_refused(run_maki(Arguments{"train", "--resume", folder / "run", "--max-steps", "8"} + given), 2,
                  {"tokenizer_file", "resumed"});
  require_refused(run_maki(Arguments{"train", corpus, "--init-from", folder / "run", "--max-steps", "2"} + given), 2,
                  {"tokenizer_file", "--init-from"});
  for (const Arguments& more : {Arguments{"--tokenizer", "bpe"}, Arguments{"--normalize", "nfc"}})
    require_refused(run_maki(Arguments{"train", corpus, "--max-steps", "2"} + given + more), 2, {"omit " + more[0]});
  require_refused(run_maki({"train", corpus, "--max-steps", "2", "--tokenizer-file", corpus}), 3, {"other.txt"});
  require_refused(run_maki({"train", corpus, "--max-steps", "2", "--vocab-size", "500"}), 2, {"vocab_size", "bpe"});
  require_ok(run_maki({"train", corpus, "--out", folder / "more", "--init-from", folder / "run", "--max-steps", "2"}));
}
