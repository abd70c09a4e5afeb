// Corpora as users have them: directories that contain more than text, other encodings, characters that a model lacks.
#include <filesystem>
#include <fmt/format.h>
#include <iconv.h>
#include <nlohmann/json.hpp>

#include "tests/cli/require_refused.h"
#include "tests/exotic_texts.h"
#include "tests/metrics_lines.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

std::string in_shift_jis(const std::string& text) {
  const iconv_t converter = iconv_open("SHIFT_JIS", "UTF-8");
  std::string from = text, to(text.size(), '\0');
  char *in = from.data(), *out = to.data();
  std::size_t left = from.size(), room = to.size();
  REQUIRE(iconv(converter, &in, &left, &out, &room) == 0);
  iconv_close(converter);
  to.resize(to.size() - room);
  return to;
}

Finished finished(const Finished& done) {
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  return done;
}

Finished go_on(const std::string& run, const Arguments& more = {}) {
  return run_maki(Arguments{"train", "--resume", run, "--max-steps", "8"} + more);
}

}  // namespace

TEST_CASE("a directory: skipped files are reported, and a resumed run reads the same files") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "text/runs/old");
  folder.write("text/a.txt", small_text());
  folder.write("text/b.txt", small_japanese_text());
  folder.write("text/notes.md", "not this");
  folder.write("text/.hidden", "nor this");
  folder.write("text/image", std::string("\0\1\2", 3));
  folder.write("text/runs/old/metrics.jsonl", "{}");
  const Arguments patterns = {"--include", "*.txt", "--include", "image", "--exclude", "b.*"};
  const Finished trained = finished(train(folder, folder / "text", patterns));
  REQUIRE_THAT(trained.err,
               ContainsSubstring("1 file is read; skipped: 1 hidden, 1 binary, 2 excluded, 1 directory of runs\n"));
  REQUIRE_THAT(read_text(folder / "run/config.toml"), ContainsSubstring("include = ['*.txt', 'image']"));
  finished(go_on(folder / "run"));
  const json own = json::parse(finished(run_maki({"eval", folder / "run", "--json"})).out);
  REQUIRE(own.at("part") == "validation");
  REQUIRE(own.at("unknown_characters") == 0);
  require_refused(go_on(folder / "run", {"--exclude", "nothing", "--max-steps", "12"}), 3,
                  {"not the text of this run"});
  finished(go_on(folder / "run", {folder / "text/a.txt", "--max-steps", "10"}));  // the same text, named as a file
  require_refused(run_maki({"train", folder / "text/a.txt", "--include", "*.txt", "--out", folder / "other"}), 2,
                  {"include and exclude", "directory"});
}

TEST_CASE("an unusual text is trained on, or refused with what is wrong with it") {
  const TemporaryFolder folder;
  const Arguments tiny = {"--max-steps", "5", "--val-fraction", "0", "--n-layer",    "1", "--n-head", "1",
                          "--n-embd",    "8", "--block-size",   "4", "--batch-size", "2"};
  int trained = 0, refused = 0;
  const auto train_on = [&](const std::string& bytes) {
    const std::string corpus = folder.write("corpus", bytes);
    return run_maki(Arguments{"train", corpus, "--out", folder / std::to_string(trained)} + tiny);
  };
  for (const auto& [name, bytes] : exotic_texts()) {
    INFO(name);
    finished(train_on(bytes));
    if (bytes.find('\0') != std::string::npos) {
      const Finished text = finished(run_maki(
          {"generate", folder / std::to_string(trained), "--prompt-file", folder / "corpus", "--max-tokens", "1"}));
      REQUIRE(text.out.starts_with(bytes));
    }
    ++trained;
  }
  for (const auto& [bytes, words] : files_without_text()) {
    require_refused(train_on(bytes), 3, words);
    ++refused;
  }
  for (const std::string& bytes : {std::string("a"), std::string("abcd")})
    require_refused(train_on(bytes), 3, {fmt::format("block_size + 1 = 5 tokens; it has {};", bytes.size())});
  REQUIRE(trained == 13);
  REQUIRE(refused == 9);
}

TEST_CASE("the validation text has its share of every file, so one text and its pieces are different corpora") {
  const TemporaryFolder folder;
  const std::string english = small_text(), japanese = small_japanese_text();
  const std::string first = folder.write("1.txt", english), second = folder.write("2.txt", japanese),
                    both = folder.write("both.txt", english + japanese);
  const auto start = [&](const Arguments& corpus, const std::string& run) {
    return finished(
        run_maki(Arguments{"train"} + corpus + Arguments{"--out", folder / run, "--max-steps", "4"} + kSmall));
  };
  // One text is validated on its end, two files on the ends of both, so weights and losses differ.
  start({first, second}, "run");
  start({both}, "one");
  REQUIRE(read_text(checkpoint(folder / "run", 4)) != read_text(checkpoint(folder / "one", 4)));
  finished(go_on(folder / "run"));
  require_refused(go_on(folder / "run", {both, "--max-steps", "12"}), 3, {"not the text of this run"});
}

TEST_CASE("Shift_JIS is recognised, and read on request, also by a resumed run") {
  const TemporaryFolder folder;
  const std::string text = small_japanese_text(), path = folder.write("sjis.txt", in_shift_jis(text));
  require_refused(train(folder, path), 3, {"SHIFT_JIS", "iconv -f SHIFT_JIS -t UTF-8 " + path, "--encoding"});
  finished(train(folder, path, {"--encoding", "SHIFT_JIS"}));
  finished(go_on(folder / "run"));
  REQUIRE(json::parse(finished(run_maki({"eval", folder / "run", "--json"})).out).at("part") == "validation");
  // Other texts of a user with such files are in the same encoding; those in UTF-8 remain what they are.
  REQUIRE_THAT(
      finished(run_maki({"eval", folder / "run", folder.write("other.txt", in_shift_jis("山と川の話。\n"))})).err,
      ContainsSubstring("with encoding = 'SHIFT_JIS'; to read it otherwise: --encoding UTF-8"));
  for (const std::string& prompt : {in_shift_jis("山と"), std::string("山と")}) {
    const std::string file = folder.write("prompt.txt", prompt);
    REQUIRE(finished(run_maki({"generate", folder / "run", "--prompt-file", file, "--max-tokens", "2"}))
                .out.starts_with("山と"));
  }
  // A run is resumed on its text in another encoding, because the characters are equal.
  const Arguments utf8 = {folder.write("utf8.txt", text), "--encoding", "UTF-8"};
  finished(run_maki(Arguments{"train", "--resume", folder / "run", "--max-steps", "12"} + utf8));
  require_refused(run_maki({"train", path, "--encoding", "nonsense", "--out", folder / "none"}), 2, {"nonsense"});
}

TEST_CASE("replaced bytes are counted, and more than 1 % is rejected") {
  const TemporaryFolder folder;
  const Finished few = finished(
      train(folder, folder.write("few.txt", small_text() + "\xff" + small_text()), {"--invalid-utf8", "replace"}));
  REQUIRE_THAT(few.err, ContainsSubstring(fmt::format("replaced 1 of {} bytes", 2 * small_text().size() + 1)));
  require_refused(
      run_maki({"train", folder.write("many.txt", std::string(100, 'a') + "\x80\x80" + small_text().substr(0, 90)),
                "--out", folder / "none", "--invalid-utf8", "replace"}),
      3, {"2 of its 192 bytes", "1 %"});
}

TEST_CASE("a run and a compressed file are rejected as corpora") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  finished(train(folder, corpus));
  require_refused(run_maki({"train", run}), 2, {run, "maki train --resume " + run});
  const std::string packed = folder.write("corpus.txt.gz", "\x1F\x8B\x08 and so on");
  require_refused(run_maki({"train", packed}), 3, {"gzip", "zcat " + packed + " | maki train -"});
}

TEST_CASE("a text of one character, over and over, is learned with a loss of 0") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const Arguments five = {"--tokenizer", "char", "--max-steps", "5", "--log-interval", "1"};
  const Finished trained = finished(train(folder, folder.write("a.txt", std::string(400, 'a')), five));
  REQUIRE_THAT(trained.err, ContainsSubstring("vocabulary of 1;"));
  const std::vector<json> steps = metrics_lines(run + "/metrics.jsonl", "train");
  REQUIRE(steps.size() == 5);
  for (const json& step : steps) REQUIRE((step.at("loss") == 0 && step.at("grad_norm") == 0));
  for (const json& evaluation : metrics_lines(run + "/metrics.jsonl", "eval")) REQUIRE(evaluation.at("val_loss") == 0);
  REQUIRE(finished(run_maki({"generate", run, "--max-tokens", "5"})).out == "aaaaa");
}

TEST_CASE("a prompt with characters that the model lacks") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  finished(train(folder, folder.write("corpus.txt", small_text())));
  const auto generate = [&](const std::string& prompt, const Arguments& more) {
    return run_maki(Arguments{"generate", run, "--seed", "1", "--max-tokens", "9", "--prompt", prompt} + more);
  };
  require_refused(generate("the 猫", {}), 3, {"猫 (U+732B);", "--unknown skip"});
  require_refused(generate("the", {"--unknown", "drop"}), 2, {"error, skip, replace"});
  const Finished skipped = finished(generate("the 猫", {"--unknown", "skip"}));
  REQUIRE_THAT(skipped.err, ContainsSubstring("prompt: 1 character that the vocabulary lacks was left out"));
  REQUIRE(skipped.out == finished(generate("the ", {})).out);
  REQUIRE(finished(generate("猫the", {"--unknown", "replace"})).out == finished(generate(" the", {})).out);
  REQUIRE(finished(generate("猫", {"--unknown", "skip"})).out == finished(generate("", {})).out);
}

TEST_CASE("eval of a text with characters that the model lacks") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), run = folder / "run";
  finished(train(folder, corpus));
  const std::string other = folder.write("other.txt", "the maki 猫 unrolls Ω slowly 猫\n"),
                    rest = folder.write("rest.txt", "the maki  unrolls  slowly \n"),
                    spaces = folder.write("spaces.txt", "the maki   unrolls   slowly  \n");
  require_refused(run_maki({"eval", run, other}), 3, {"猫 (U+732B) 2 times, Ω (U+03A9);", "--unknown skip"});
  require_refused(run_maki({"eval", run, other, "--unknown", "drop"}), 2, {"skip", "drop"});
  const auto facts = [&](const Arguments& more) {
    return json::parse(finished(run_maki(Arguments{"eval", run, "--json"} + more)).out);
  };
  const json skipped = facts({other, "--unknown", "skip"}), replaced = facts({other, "--unknown", "replace"});
  REQUIRE(skipped.at("unknown_characters") == 3);
  REQUIRE(replaced.at("unknown_characters") == 3);
  REQUIRE(skipped.at("val_loss") == facts({rest}).at("val_loss"));
  REQUIRE(skipped.at("bits_per_byte") == facts({rest}).at("bits_per_byte"));
  REQUIRE(replaced.at("val_loss") == facts({spaces}).at("val_loss"));
  REQUIRE_THAT(finished(run_maki({"eval", run, other, "--unknown", "skip"})).out,
               ContainsSubstring("3 characters that the vocabulary lacks were left out"));
}
