// maki prepare, and training, resuming, evaluating, planning and inspecting with what it wrote.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/cli/require_refused.h"

using namespace maki::tests;
using nlohmann::json;

namespace {

const Arguments kTwenty = {"--max-steps", "20"};

// Sanitizers and emulators take memory of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasuresMemory = false;
#else
constexpr bool kMeasuresMemory = std::string_view(MAKI_EMULATOR).empty();
#endif

// Everything of a run that does not depend on the clock or on paths.
std::vector<std::string> bytes_of(const std::string& run) {
  std::vector<std::string> files;
  for (const int step : {0, 20}) files.push_back(read_text(checkpoint(run, step)));
  return files;
}

}  // namespace

TEST_CASE("a run on a token file has the bytes of a run on the text, also when it is interrupted and resumed") {
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < 12; ++i)
    folder.write(fmt::format("d/{}.txt", i), small_text().substr(400 * i % 3000, 1500));
  folder.write("d/last.txt", "q");
  require_ok(run_maki({"tokenizer", "train", folder / "d", "--out", folder / "t.json", "--vocab-size", "300"}));
  const std::vector<std::pair<Arguments, Arguments>> kinds = {
      {{}, {}}, {{"--tokenizer", "word"}, {}}, {{"--tokenizer-file", folder / "t.json"}, {"--documents"}}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& [tokenizer, documents] = kinds[i];
    INFO(i);
    const auto name = [&](const std::string& what) { return folder / fmt::format("{}-{}", what, i); };
    const Arguments sources = {folder / "d"};
    require_ok(run_maki(Arguments{"prepare"} + sources + Arguments{"--out", name("data")} + tokenizer + documents));
    require_ok(run_maki(Arguments{"train"} + sources + Arguments{"--out", name("text")} + kTwenty + kSmall + tokenizer +
                        documents));
    require_ok(run_maki(Arguments{"train", name("data"), "--out", name("run")} + kTwenty + kSmall));
    REQUIRE(bytes_of(name("run")) == bytes_of(name("text")));
    require_ok(run_maki(Arguments{"train", name("data"), "--out", name("part"), "--max-steps", "9", "--threads", "1"} +
                        kSmall));
    require_ok(run_maki({"train", "--resume", name("part"), "--max-steps", "20"}));
    REQUIRE(read_text(checkpoint(name("part"), 20)) == read_text(checkpoint(name("text"), 20)));
    const json of_text = json::parse(require_ok(run_maki({"eval", name("text"), "--json"})).out);
    json of_tokens = json::parse(require_ok(run_maki({"eval", name("part"), "--json"})).out);
    of_tokens["checkpoint"] = of_text.at("checkpoint");
    REQUIRE(of_tokens == of_text);
    // Text and tokens are the same corpus: each run continues with the other one.
    if (!documents.empty())
      require_refused(run_maki(Arguments{"train", "--resume", name("run")} + sources + Arguments{"--max-steps", "22"}),
                      3, {"is not the text of this run", "with the options that say how they were read"});
    require_ok(
        run_maki(Arguments{"train", "--resume", name("run")} + sources + Arguments{"--max-steps", "22"} + documents));
    require_ok(run_maki({"train", "--resume", name("text"), name("data"), "--max-steps", "22"}));
    REQUIRE(read_text(checkpoint(name("run"), 22)) == read_text(checkpoint(name("text"), 22)));
  }
}

TEST_CASE("a long text is prepared in little memory, whatever its tokens are") {
  const TemporaryFolder folder;
  const std::string part = small_text() + small_japanese_text() + "<|endoftext|>", path = folder.write("text", "");
  std::ofstream text(path);
  for (std::size_t size = 0; size < 100'000'000; size += part.size()) text << part;
  text.close();
  for (const char* const kind : {"byte", "char", "word", "bpe"}) {
    INFO(kind);
    const Finished finished = require_ok(run_maki({"prepare", path, "--tokenizer", kind, "--out", folder / kind}));
    if (!kMeasuresMemory) continue;
    REQUIRE(finished.peak_resident > 0);
    REQUIRE(finished.peak_resident < 64 << 20);
  }
}

TEST_CASE("a text of many files, or with few documents for validation, is prepared in little memory") {
  const TemporaryFolder folder;
  std::string line;
  while (line.size() < 1000) line += "the maki is here, and ";
  const std::string part = line + "\n===\n", path = folder.write("documents", "");
  std::ofstream documents(path);
  for (int i = 0; i < 38; ++i) {
    std::string file;
    while (file.size() < 1'000'000) file += line + "\n";
    folder.write(fmt::format("d/{}.txt", i), file);
    for (std::size_t size = 0; size < 1'000'000; size += part.size()) documents << part;
  }
  documents.close();
  const Arguments few = {path, "--document-separator", "===", "--val-fraction", "0.05"};
  for (const Arguments& corpus : {Arguments{folder / "d"}, few}) {
    INFO(corpus[0]);
    const Arguments prepare = {"prepare", "--tokenizer", "byte", "--force", "--out", folder / "t"};
    const Finished finished = require_ok(run_maki(prepare + corpus));
    if (!kMeasuresMemory) continue;
    REQUIRE(finished.peak_resident > 0);
    REQUIRE(finished.peak_resident < 48 << 20);
  }
}

TEST_CASE("a vocabulary is learned from many short documents without reading a page again for each") {
  const TemporaryFolder folder;
  constexpr int kDocuments = 100'000;
  std::string text;
  for (int i = 0; i < kDocuments; ++i) text += "maki\n===\n";
  const Arguments prepare = {"prepare", folder.write("text", text), "--document-separator", "===", "--out"};
  const Finished finished = require_ok(run_maki(prepare + Arguments{folder / "t", "--tokenizer", "word"}));
  if (!kMeasuresMemory) return;
  REQUIRE(finished.page_faults < kDocuments / 2);
}

TEST_CASE("prepare says how much of a long text its vocabulary was learned from") {
  const TemporaryFolder folder;
  std::string text;
  while (text.size() < 5'000'000) text += "A sentence, and another one.\n";
  const Arguments prepare = {"prepare", folder.write("long.txt", text), "--out", folder / "t", "--tokenizer", "word"};
  const Finished long_text = require_ok(run_maki(prepare + Arguments{"--json"}));
  const auto learned = json::parse(long_text.out).at("learned_bytes").get<std::int64_t>();
  REQUIRE(learned >= 4 << 20);
  REQUIRE_THAT(long_text.err, ContainsSubstring(fmt::format("learned from {} of the 4500", learned)));
  const Finished short_text = require_ok(
      run_maki({"prepare", folder.write("short.txt", small_text()), "--out", folder / "u", "--tokenizer", "word"}));
  REQUIRE_FALSE(contains(short_text.err, "learned from"));
  for (const char* const kind : {"char", "byte"}) {
    const Arguments others = {"prepare", folder / "short.txt", "--out", folder / kind, "--tokenizer", kind, "--json"};
    REQUIRE_FALSE(json::parse(require_ok(run_maki(others)).out).contains("learned_bytes"));
  }
}

TEST_CASE("prepare and inspect report the same facts, and --verify reads the file") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), out = folder / "new/folder/corpus.tokens";
  const json prepared = json::parse(require_ok(run_maki({"prepare", corpus, "--out", out, "--json"})).out);
  REQUIRE(prepared.at("format") == "maki");
  REQUIRE(prepared.at("files") == json::array({out}));
  const json facts = json::parse(require_ok(run_maki({"inspect", out, "--verify", "--json"})).out);
  for (const char* const key : {"train_tokens", "val_tokens", "vocab_size", "tokenizer", "tokenizer_hash",
                                "corpus_hash", "bytes", "characters", "documents"})
    REQUIRE(facts.at(key) == prepared.at(key));
  REQUIRE(facts.at("bytes") == small_text().size());
  REQUIRE(facts.at("verified") == true);
  REQUIRE(facts.at("pieces") == json{{"train", 1}, {"val", 1}});
  REQUIRE(facts.at("bytes_of_file") == std::filesystem::file_size(out));
  REQUIRE_THAT(require_ok(run_maki({"inspect", out})).out, ContainsSubstring("char, vocabulary of "));
  REQUIRE(json::parse(require_ok(run_maki({"tokenizer", "inspect", out, "--json"})).out).at("hash") ==
          facts.at("tokenizer_hash"));
  std::string bytes = read_text(out);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_bytes(out, bytes);
  require_ok(run_maki({"inspect", out}));
  require_refused(run_maki({"inspect", out, "--verify"}), 3, {out, "checksum mismatch of its data"});
}

TEST_CASE("inspect shows several token files as the one text that a run makes of them") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), parts = folder / "parts";
  std::filesystem::create_directory(parts);
  const Arguments files = {parts + "/a.tokens", parts + "/b.tokens"};
  for (const std::string& file : files) require_ok(run_maki({"prepare", corpus, "--out", file}));
  const json facts = json::parse(require_ok(run_maki(Arguments{"inspect", "--verify", "--json"} + files)).out);
  REQUIRE(facts.at("path") == files[0] + " and 1 more");
  REQUIRE(facts.at("bytes") == 2 * small_text().size());
  const json one = json::parse(require_ok(run_maki({"inspect", parts, "--verify", "--json"})).out);
  REQUIRE(one.at("path") == parts);
  REQUIRE(one.at("corpus_hash") == facts.at("corpus_hash"));
  require_refused(run_maki(Arguments{"inspect", "--checkpoint", "last"} + files), 2, {"no checkpoints"});
}

TEST_CASE("a directory of the parts of a text may contain the tokenizer that made them") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), out = folder / "tokens";
  require_ok(run_maki({"prepare", corpus, "--format", "llm.c", "--out", out}));
  const json whole = json::parse(require_ok(run_maki({"inspect", out, "--json"})).out);
  std::filesystem::rename(out + "/train.bin", out + "/text_train_000001.bin");
  std::filesystem::rename(out + "/val.bin", out + "/text_val_000000.bin");
  const json parts = json::parse(require_ok(run_maki({"inspect", out, "--json"})).out);
  REQUIRE(parts.at("train_tokens") == whole.at("train_tokens"));
  REQUIRE(parts.at("tokenizer_hash") == whole.at("tokenizer_hash"));
  require_ok(train(folder, out));
}

TEST_CASE("documents of JSON lines from standard input, with the tokenizer of a run") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  require_ok(train(folder, corpus, {"--tokenizer", "bpe", "--vocab-size", "300"}));
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += json{{"id", i}, {"body", small_text().substr(20, 100)}}.dump() + "\n";
  const json facts = json::parse(require_ok(run_maki({"prepare", "-", "--out", folder / "t", "--json-field", "body",
                                                      "--tokenizer-file", folder / "run", "--json"},
                                                     {.input = lines}))
                                     .out);
  REQUIRE(facts.at("documents") == 60);
  require_ok(
      run_maki({"train", folder / "t", "--init-from", folder / "run", "--out", folder / "more", "--max-steps", "2"}));
  require_refused(run_maki({"prepare", "-", "--out", folder / "u", "--json-field", "text"}, {.input = lines}), 3,
                  {"standard input: line 1 has no field text; it has body, id"});
  REQUIRE_FALSE(std::filesystem::exists(folder / "u"));
}

TEST_CASE("a run is planned for a token file without reading its text") {
  const TemporaryFolder folder;
  require_ok(run_maki({"prepare", folder.write("corpus.txt", small_text()), "--out", folder / "t"}));
  const json plan = json::parse(require_ok(run_maki({"plan", folder / "t", "--minutes", "0.05", "--json"})).out);
  REQUIRE_FALSE(plan.at("fields").contains("tokenizer"));
  REQUIRE_FALSE(plan.at("fields").contains("val_fraction"));
  require_ok(run_maki({"train", folder / "t", "--minutes", "0.03", "--out", folder / "run"}));
}

TEST_CASE("train reads the token files of nanoGPT and llm.c") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  require_ok(run_maki({"tokenizer", "train", corpus, "--out", folder / "t.json", "--vocab-size", "300"}));
  for (const std::string format : {"nanogpt", "llm.c"}) {
    const std::string out = folder / format, run = folder / ("run-" + format), named = run + "-named";
    require_ok(run_maki({"prepare", corpus, "--format", format, "--out", out, "--tokenizer-file", folder / "t.json"}));
    require_ok(run_maki(Arguments{"train", out, "--out", run, "--max-steps", "3"} + kSmall));
    const json shown = json::parse(require_ok(run_maki({"inspect", out, "--json"})).out);
    REQUIRE(shown.at("bytes") == small_text().size());
    REQUIRE(shown.at("vocab_size") == 300);
    REQUIRE(shown.at("bytes_of_file") ==
            std::filesystem::file_size(out + "/train.bin") + std::filesystem::file_size(out + "/val.bin"));
    // What is held back is a file of its own, or nothing.
    const auto held_back = shown.at("val_tokens").get<double>();
    REQUIRE(shown.at("val_fraction") == held_back / (held_back + shown.at("train_tokens").get<double>()));
    require_refused(run_maki({"inspect", out, "--verify"}), 2, {"have no checksums"});
    // Files of another program lie beside no tokenizer of maki.
    std::filesystem::remove(out + "/maki-tokenizer");
    require_refused(run_maki({"train", out, "--out", named}), 3, {"train.bin", "--tokenizer-file"});
    require_refused(run_maki({"inspect", out}), 3, {"there is no tokenizer beside them"});
    require_ok(run_maki(
        Arguments{"train", out, "--out", named, "--tokenizer-file", folder / "t.json", "--max-steps", "3"} + kSmall));
    REQUIRE(read_bytes(checkpoint(run, 3)) == read_bytes(checkpoint(named, 3)));
    require_ok(run_maki({"train", "--resume", run, "--max-steps", "5"}));
    const json facts = json::parse(require_ok(run_maki({"eval", run, "--json"})).out);
    REQUIRE(facts.at("part") == "validation");
    REQUIRE(facts.at("val_loss").get<double>() > 0);
    // Which file is not used as its name says is told.
    const std::string part = out + "-train.bin", test = out + "-test.bin";
    std::filesystem::copy_file(out + "/train.bin", part);
    std::filesystem::copy_file(out + "/val.bin", test);
    REQUIRE_THAT(require_ok(run_maki({"eval", run, part, test})).err,
                 ContainsSubstring(test + ": is for testing, as its name says, and is used for validation"));
    require_refused(run_maki({"prepare", corpus, "--format", format, "--out", out}), 2,
                    {"is not an empty directory", "--force"});
    require_ok(run_maki({"prepare", corpus, "--format", format, "--out", out, "--force", "--val-fraction", "0"}));
    const json all = json::parse(require_ok(run_maki({"inspect", out, "--json"})).out);
    REQUIRE(all.at("val_tokens") == 0);
    REQUIRE(all.at("pieces").at("val") == 0);
  }
}

TEST_CASE("a vocabulary that stays smaller than asked for makes no difference between text and tokens") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "a cat and a dog\n";
  const std::string corpus = folder.write("corpus.txt", text);
  const Arguments bpe = {"--tokenizer", "bpe", "--vocab-size", "400"}, steps = {"--max-steps", "2"};
  require_ok(run_maki(Arguments{"prepare", corpus, "--out", folder / "t"} + bpe));
  require_ok(run_maki(Arguments{"train", corpus, "--out", folder / "text"} + bpe + steps + kSmall));
  require_ok(run_maki(Arguments{"train", folder / "t", "--out", folder / "tokens"} + steps + kSmall));
  REQUIRE(read_bytes(checkpoint(folder / "text", 2)) == read_bytes(checkpoint(folder / "tokens", 2)));
}

TEST_CASE("a directory that looks like tokens but lacks a part is never trained on as a text") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text());
  for (const std::string format : {"nanogpt", "llm.c"}) {
    const std::string out = folder / format, val = out + "/val.bin";
    require_ok(run_maki({"prepare", corpus, "--format", format, "--out", out}));
    // What earlier versions left when they were killed between two files, and nanoGPT's own folder.
    std::filesystem::remove(val);
    require_refused(train(folder, out), 3, {out, "contains train.bin", "no val.bin"});
    require_refused(run_maki({"prepare", out, "--out", folder / "u"}), 3, {"contains train.bin", "no val.bin"});
    require_refused(run_maki({"train", out, corpus, "--out", folder / "v"}), 3, {out, "contains train.bin", "alone"});
    folder.write(format + "/input.txt", small_text());
    std::filesystem::remove(out + "/maki-tokenizer");
    require_refused(train(folder, out), 3, {"contains train.bin", "no val.bin"});
    std::filesystem::rename(out + "/train.bin", val);
    require_refused(train(folder, out), 3, {"contains val.bin", "no train.bin"});
    std::filesystem::rename(val, out + "/maki-tokenizer");
    require_refused(train(folder, out), 3, {"contains maki-tokenizer", "no train.bin and val.bin"});
  }
}

TEST_CASE("an interrupted prepare leaves nothing behind") {
  const TemporaryFolder folder;
  const std::string out = folder / "t";
  folder.write("t.tmp", "the user's");
  RunOptions options;
  options.input = small_text();
  options.input_stays_open = true;
  options.meanwhile = [](pid_t process) {
    wait_for_handlers(process);
    kill(process, SIGINT);
  };
  for (const char* const format : {"maki", "nanogpt"})
    REQUIRE(run_maki({"prepare", "-", "--out", out, "--format", format}, options).exit_code == 130);
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  REQUIRE(read_text(out + ".tmp") == "the user's");
}

TEST_CASE("what cannot be done with a token file is refused with a sentence") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", small_text()), tokens = folder / "t";
  require_ok(run_maki({"prepare", corpus, "--out", tokens}));
  require_ok(train(folder, corpus));
  const std::string other = folder / "other";
  require_ok(run_maki({"prepare", folder.write("x", small_text() + small_text()), "--out", other}));
  require_refused(run_maki({"prepare", corpus, "--out", corpus}), 2, {"is read by this command"});
  REQUIRE(read_text(corpus) == small_text());
  require_refused(run_maki({"prepare", corpus, "--out", folder / "u", "--format", "numpy"}), 2,
                  {"must be one of maki, nanogpt, llm.c"});
  require_refused(run_maki({"prepare", corpus, "--out", corpus + "/u"}), 4, {corpus + " is not a directory"});
  require_refused(run_maki({"prepare", corpus, "--out", folder / "u/"}), 2,
                  {folder / "u/" + ": is the name of a directory; name a file"});
  require_refused(run_maki({"prepare", corpus, "--out", folder / "u", "--vocab-size", "300"}), 2, {"vocab_size"});
  require_refused(run_maki({"prepare", tokens, "--out", folder / "u"}), 3, {"contains tokens already"});
  for (const Arguments& option :
       {Arguments{"--tokenizer", "byte"}, Arguments{"--val-fraction", "0.2"}, Arguments{"--json-field", "text"}})
    require_refused(run_maki(Arguments{"train", tokens, "--out", folder / "v"} + option), 2,
                    {option[0] + ": is fixed in " + tokens});
  require_refused(run_maki({"train", tokens, corpus, "--out", folder / "v"}), 3, {"other token files alone"});
  require_refused(run_maki({"train", tokens, "--model", "seq2seq", "--out", folder / "v"}), 3, {"contains tokens"});
  require_refused(run_maki({"eval", folder / "run", other}), 3, {"is not the corpus of this model"});
  // The text of the model with another split has training text in its validation part.
  const std::string resplit = folder / "resplit", run = folder / "run";
  for (const char* const fraction : {"0.5", "0"}) {
    require_ok(run_maki(
        {"prepare", corpus, "--tokenizer-file", run, "--val-fraction", fraction, "--out", resplit, "--force"}));
    require_refused(run_maki({"eval", run, resplit}), 3,
                    {fmt::format("prepared with --val-fraction {}, but the model has learned it with 0.1", fraction)});
  }
  require_refused(run_maki({"eval", folder / "run", tokens, "--per-file"}), 3, {"--per-file"});
  require_refused(run_maki({"tokenizer", "train", tokens, "--out", folder / "j"}), 3, {"learns from text"});
  require_refused(run_maki({"inspect", tokens, "--checkpoint", "last"}), 2, {"no checkpoints"});
}
