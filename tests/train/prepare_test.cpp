// Preparing a corpus gives the tokens that training from the text would make, with bounded memory, or nothing at all.
#include "train/run/convert/prepare.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "data/io/utf8.h"
#include "data/tokenizer/special_text.h"
#include "tests/data/allocations.h"
#include "tests/train/prepared.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Prepares, and requires the dataset of the text.
void require_as_in_memory(const TemporaryFolder& folder, const std::vector<std::string>& sources,
                          PrepareOptions options) {
  const std::string out = folder / "t.tokens";
  std::vector<std::string> notes;
  options.on_notes = [&](const auto& more) { notes.insert(notes.end(), more.begin(), more.end()); };
  const Prepared prepared = prepare(sources, out, options);
  const auto corpus = prepared_corpus({out});
  REQUIRE(corpus);
  verify_token_file(*corpus->prepared);
  const Corpus text = load_corpus(sources, options.corpus);
  const Dataset expected =
      make_dataset(text, options.val_fraction, 4, options.tokenizer_kind, options.tokenizer, options.tokenizer_options);
  require_same(make_dataset(*corpus, options.val_fraction, 4, "", nullptr), expected);
  REQUIRE(notes == text.notes);
  const TokenFileFacts& facts = corpus->prepared->facts;
  const SplitText split = split_text(text, options.val_fraction, prepared.tokenizer->normalization());
  std::size_t bytes = 0;
  for (const std::string_view piece : split.val) bytes += piece.size();
  REQUIRE(facts.val_bytes == static_cast<std::int64_t>(bytes));
  REQUIRE(facts.val_characters == count_code_points(split.val));
  REQUIRE(facts.bytes == static_cast<std::int64_t>(text.text.size()));
  REQUIRE(facts.documents == std::ssize(text.documents));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    REQUIRE_FALSE(entry.path().string().ends_with(".tmp"));
}

}  // namespace

TEST_CASE("what is prepared are the tokens of the text, for every tokenizer and kind of document") {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  std::string separated, json;
  for (std::uint64_t i = 0; i < 5; ++i) {
    const std::string text = words(i == 3 ? 0 : 2000 + 700 * i, i);
    files.push_back(folder.write(fmt::format("d/{}.txt", i), text));
    separated += text + "\n<sep>\n";
  }
  for (std::size_t i = 0; i < 50; ++i)
    json += fmt::format("{{\"n\": {}, \"t\": \"{} 猫\\n\"}}\n", i, std::string(i, 'x'));
  const std::string one = folder.write("one", separated), lines = folder.write("a.jsonl", json);
  for (const char* const kind : {"char", "byte", "word", "bpe"}) {
    for (const Normalization form : {Normalization::none, Normalization::nfc, Normalization::nfkc}) {
      INFO(kind << ", " << to_string(form));
      const PrepareOptions options{.sources = {},
                                   .tokenizer_kind = kind,
                                   .tokenizer_options = {.vocab_size = 300, .normalization = form},
                                   .out = {}};
      require_as_in_memory(folder, files, options);
      require_as_in_memory(folder, {folder / "d"}, options);
      for (const double fraction : {0.0, 0.3}) {
        PrepareOptions documents = options;
        documents.val_fraction = fraction;
        documents.corpus.documents.separator = "<sep>";
        require_as_in_memory(folder, {one}, documents);
        documents.corpus.documents = {.json_field = "t"};
        require_as_in_memory(folder, {lines}, documents);
        documents.corpus.documents = {.files = true};
        require_as_in_memory(folder, files, documents);
      }
    }
  }
}

TEST_CASE("letters and their marks are prepared as in memory, wherever a text is divided") {
  const TemporaryFolder folder;
  std::string text, lines;
  for (int i = 0; i < 30; ++i) text += "ﾌﾟﾛｸﾞﾗﾑ ﾃﾞｰﾀ ﾊﾞｲﾄ ";
  // The document for validation alone begins with a mark, which the letter before must not take from it.
  for (int i = 0; i < 10; ++i) lines += i == 4 ? "{\"t\": \"\u0301 ape tape\"}\n" : "{\"t\": \"a tape, ape\"}\n";
  const std::string path = folder.write("katakana", text), json = folder.write("a.jsonl", lines);
  for (const Normalization form : {Normalization::none, Normalization::nfc, Normalization::nfkc}) {
    PrepareOptions options{.sources = {}, .tokenizer_options = {.normalization = form}, .out = {}};
    for (int i = 0; i < 20; ++i) {
      options.val_fraction = i / 20.0;  // some cuts are before the mark of デ
      INFO(to_string(form) << ", " << options.val_fraction);
      require_as_in_memory(folder, {path}, options);
    }
    options.val_fraction = 0.1;
    options.corpus.documents = {.json_field = "t"};
    require_as_in_memory(folder, {json}, options);
  }
}

TEST_CASE("a new vocabulary of characters has those of a long normalized text, and no parts of them") {
  const TemporaryFolder folder;
  std::string text;
  while (text.size() < kMaxLearnedBytes + 1'000'000) text += "e\u0301";  // é
  const PrepareOptions options{
      .sources = {}, .tokenizer_kind = "char", .tokenizer_options = {.normalization = Normalization::nfc}, .out = {}};
  REQUIRE(prepare({folder.write("long", text)}, folder / "t.tokens", options).tokenizer->vocab_size() == 1);
}

TEST_CASE("a given tokenizer that normalizes encodes what is known after normalization") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "z e\u0301 ";  // there is no ź, although z and the accent occur
  const TokenizerOptions nfc{.normalization = Normalization::nfc};
  PrepareOptions options{.sources = {}, .tokenizer = make_tokenizer("char", text, nfc), .out = {}};
  const std::string path = folder.write("text", text);
  require_as_in_memory(folder, {path}, options);
  options.tokenizer = make_tokenizer("char", "z e", nfc);
  REQUIRE_THAT(error_message<CorpusError>([&] { prepare({path}, folder / "t", options); }),
               ContainsSubstring("lacks these characters: é (U+00E9)"));
  // As for a text in memory, a character that stands in the text.
  options.tokenizer = make_tokenizer("char", "z e", {.normalization = Normalization::nfkc});
  const std::string circled = folder.write("circled", "z ① z ①"), said = "lacks these characters: ① (U+2460) 2 times";
  REQUIRE_THAT(error_message<CorpusError>([&] { prepare({circled}, folder / "t", options); }),
               ContainsSubstring(said) && !ContainsSubstring("U+0031"));
  REQUIRE_THAT(error_message<CorpusError>([&] { make_dataset(load_corpus({circled}), 0.1, 1, "", options.tokenizer); }),
               ContainsSubstring(said));
}

TEST_CASE("a text of several blocks, a built-in one and one in another encoding are prepared like any other") {
  const TemporaryFolder folder;
  const std::string text = words(10'000'000, 1), path = folder.write("long", text);
  PrepareOptions options{
      .sources = {}, .tokenizer = make_tokenizer("bpe", text.substr(0, 99'999), {.vocab_size = 400}), .out = {}};
  require_as_in_memory(folder, {path}, options);
  // A file that ends where a block of the encoder does.
  const PrepareOptions bytes{.sources = {}, .val_fraction = 0, .tokenizer_kind = "byte", .out = {}};
  require_as_in_memory(folder, {folder.write("8M", std::string(8 << 20, 'a')), folder.write("b", "bbbbbbbbbb")}, bytes);
  // A letter at the end of a block that is read, and its accent in the next one.
  const PrepareOptions composed{
      .sources = {}, .tokenizer_kind = "char", .tokenizer_options = {.normalization = Normalization::nfc}, .out = {}};
  require_as_in_memory(folder, {folder.write("4M", std::string((4 << 20) - 1, 'x') + "e\u0301 and more x")}, composed);
  options.tokenizer = nullptr;
  require_as_in_memory(folder, {"@stories:50000"}, options);
  require_as_in_memory(folder, {"@stories-ja:50000"}, options);
  options.corpus.encoding = "UTF-16LE";
  std::string wide;
  for (const char c : std::string("every letter takes two bytes here, \r\n") + std::string(100, 'z')) wide += {c, '\0'};
  require_as_in_memory(folder, {folder.write("wide", wide)}, options);
  options.corpus = {.invalid = InvalidUtf8::replace};
  require_as_in_memory(folder, {folder.write("bad", text.substr(0, 9999) + "\xff, " + text.substr(0, 3000) + " \xff.")},
                       options);
}

TEST_CASE("preparing takes memory that does not depend on the size of the text") {
  const TemporaryFolder folder;
  std::int64_t peaks[2];
  for (const int i : {0, 1}) {
    const std::string path = folder.write("text", words(i == 0 ? 18'000'000 : 36'000'000, 2));
    const auto tokenizer = std::shared_ptr<const Tokenizer>(make_tokenizer("byte", ""));
    start_peak();
    prepare({path}, folder / "t.tokens", {.sources = {}, .tokenizer = tokenizer, .out = {}});
    peaks[i] = peak_bytes();
  }
  INFO(peaks[0] << " and " << peaks[1] << " bytes");
  REQUIRE(peaks[1] < 100'000'000);
  REQUIRE(peaks[1] < peaks[0] + 5'000'000);
}

TEST_CASE("a vocabulary is learned from parts of a long text that are spread evenly over it") {
  const TemporaryFolder folder;
  std::string text;
  while (text.size() < kMaxLearnedBytes) text += "begin begin begin begin ";
  const std::size_t half = text.size();
  while (text.size() < 2 * half) text += "final final final final ";
  const Prepared prepared =
      prepare({folder.write("text", text)}, folder / "t.tokens", {.sources = {}, .tokenizer_kind = "word", .out = {}});
  REQUIRE(prepared.learned_bytes >= kMaxLearnedBytes);
  REQUIRE(prepared.learned_bytes < kMaxLearnedBytes + 64);
  REQUIRE(prepared.training_bytes == static_cast<std::size_t>(prepared.facts.bytes - prepared.facts.val_bytes));
  REQUIRE(prepared.tokenizer->encode(" begin").size() == 1);
  REQUIRE(prepared.tokenizer->encode(" final").size() == 1);
}

TEST_CASE("characters that a given tokenizer lacks are named, and no file remains") {
  const TemporaryFolder folder;
  const std::string path = folder.write("text", std::string(1000, 'a') + "猫" + std::string(1000, 'b'));
  PrepareOptions options{.sources = {}, .tokenizer = make_tokenizer("char", "ab"), .out = {}};
  REQUIRE_THAT(error_message<CorpusError>([&] { prepare({path}, folder / "t", options); }),
               ContainsSubstring("lacks these characters: 猫 (U+732B)"));
  // As for a text in memory, the most frequent first.
  const std::string often = folder.write("often", "猫a犬b犬a猫b犬");
  REQUIRE_THAT(error_message<CorpusError>([&] { prepare({often}, folder / "t", options); }),
               ContainsSubstring("lacks these characters: 犬 (U+72AC) 3 times, 猫 (U+732B) 2 times; leave them out"));
  std::filesystem::remove(often);
  for (const char* const empty : {"", "\n"}) {
    options.tokenizer = nullptr;
    options.corpus.documents.separator = "";
    if (*empty == '\n') options.corpus.documents.json_field = "text";
    REQUIRE_THAT(error_message<CorpusError>([&] { prepare({folder.write("empty", empty)}, folder / "t", options); }),
                 ContainsSubstring("is empty"));
  }
  for (const auto& [fraction, side] : {std::pair{0.1, "validation"}, {0.9, "training"}}) {
    const PrepareOptions few{
        .sources = {}, .corpus = {.documents = {.files = true}}, .val_fraction = fraction, .out = {}};
    REQUIRE_THAT(error_message<CorpusError>([&] { prepare({path}, folder / "t", few); }),
                 ContainsSubstring(std::string("leaves no ") + side));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    REQUIRE((entry.path() == path || entry.path() == folder / "empty"));
}

namespace {

// The real file system, on which the n-th call of any kind that changes a file fails.
class Failing final : public FileSystem {
 public:
  explicit Failing(int at) : at_(at) {}
  ssize_t write(int file, const void* bytes, std::size_t size) override {
    return fails() ? -1 : FileSystem::write(file, bytes, size);
  }
  ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t offset) override {
    return fails() ? -1 : FileSystem::pwrite(file, bytes, size, offset);
  }
  int open(const std::string& path, int flags, mode_t mode) override {
    return fails() ? -1 : FileSystem::open(path, flags, mode);
  }
  int fsync(int file) override { return fails() ? -1 : FileSystem::fsync(file); }
  ssize_t read(int file, void* bytes, std::size_t size) override {
    const ssize_t n = FileSystem::read(file, bytes, size);
    if (wrong_reads && n > 20) static_cast<char*>(bytes)[n / 2] ^= 1;
    return n;
  }
  int rename(const std::string& from, const std::string& to) override {
    return fails() ? -1 : FileSystem::rename(from, to);
  }
  int rename_to_new(const std::string& from, const std::string& to) override {
    return fails() ? -1 : FileSystem::rename_to_new(from, to);
  }
  int mkdir(const std::string& path, mode_t mode) override { return fails() ? -1 : FileSystem::mkdir(path, mode); }
  int calls = 0;
  bool wrong_reads = false;

 private:
  bool fails() {
    errno = ENOSPC;
    return calls++ == at_;
  }
  int at_;
};

}  // namespace

TEST_CASE("whichever call fails while a corpus is prepared, the previous file is intact and nothing else remains") {
  for (const char* const format : {"maki", "nanogpt", "llm.c"}) {
    int failed = 0;
    for (int at = 0; at < 100; ++at) {
      const TemporaryFolder folder;
      const bool foreign = format != std::string("maki");
      const std::string text = folder.write("text", words(3000, 1)), out = folder / (foreign ? "new" : "t.tokens");
      PrepareOptions options{.sources = {text}, .out = {out, !foreign}, .format = format};
      if (!foreign) folder.write("t.tokens", "what was there before");
      Failing fs(at);
      const std::string said = error_message<CheckpointError>([&] { prepare_corpus(fs, options); });
      INFO(format << ", call " << at << " of " << fs.calls << ": " << said);
      if (said.empty()) break;
      ++failed;
      REQUIRE_THAT(said, ContainsSubstring("No space left") && ContainsSubstring(folder.path()));
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
        REQUIRE_FALSE(contains(entry.path().string(), ".tmp"));
      const bool complete = contains(said, out + ": is complete, but may be lost");
      if (complete && !foreign) verify_token_file(*open_token_file(out));
      if (complete && foreign) REQUIRE(prepared_corpus({out})->prepared->facts.val_tokens > 0);
      if (!foreign && !complete) REQUIRE(read_bytes(out) == "what was there before");
      if (foreign && !complete) REQUIRE_FALSE(std::filesystem::exists(out));
    }
    REQUIRE(failed >= 8);
  }
  const TemporaryFolder folder;
  Failing fs(-1);
  fs.wrong_reads = true;
  const PrepareOptions options{.sources = {folder.write("text", words(3000, 1))}, .out = folder / "t"};
  REQUIRE_THAT(error_message<CheckpointError>([&] { prepare_corpus(fs, options); }),
               ContainsSubstring("what was read back differs"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "t"));
}

TEST_CASE("a token file and a model with different tokenizers are refused with both hashes") {
  const TemporaryFolder folder;
  const std::string out = folder / "t.tokens", text = folder.write("text", "abc abc abc abc abc");
  const Prepared prepared = prepare({text}, out);
  const std::shared_ptr<const Tokenizer> other = make_tokenizer("char", "abcd ");
  const Corpus corpus = prepared_corpus({out}).value();
  const std::string said = error_message<CorpusError>([&] { make_dataset(corpus, 0.1, 1, "", other); });
  REQUIRE_THAT(said, ContainsSubstring(other->hash()) && ContainsSubstring(prepared.tokenizer->hash()));
  REQUIRE_THAT(error_message<CorpusError>([&] { make_dataset(corpus, 0.2, 1, ""); }),
               ContainsSubstring("was prepared with `val_fraction` 0.1; got 0.2"));
  REQUIRE_THAT(error_message<CorpusError>([&] { make_dataset(corpus, 0.1, 9, ""); }), ContainsSubstring("block_size"));
  REQUIRE_THAT(error_message<CorpusError>([&] {
                 prepared_corpus({out, text});
               }),
               ContainsSubstring("other token files alone"));
}

TEST_CASE("tokens of special tokens fit a model of the same vocabulary, whose run then encodes the text alike") {
  const TemporaryFolder folder;
  const std::string out = folder / "t.tokens", text = folder.write("text", "the cat<|endoftext|>the cat<|endoftext|>");
  const std::shared_ptr<Tokenizer> model = make_tokenizer("bpe", "the cat the cat", {.vocab_size = 262});
  model->set_use({.ends = {0}});
  PrepareOptions options{.sources = {}, .val_fraction = 0, .tokenizer = model, .out = {}};
  const std::vector<std::string> notes = notes_of_preparing({text}, out, options);
  UnreadSpecials twice(*model);
  twice.add("<|endoftext|><|endoftext|>");
  REQUIRE(notes == std::vector{twice.note(/*is_new=*/false)});
  options.tokenizer = finding_specials(*model);
  REQUIRE(notes_of_preparing({text}, out, options).empty());
  const Dataset data = make_dataset(prepared_corpus({out}).value(), 0, 1, "", model);
  REQUIRE(data.train.ids() == model->encode_with_specials("the cat<|endoftext|>the cat<|endoftext|>"));
  REQUIRE(data.tokenizer->save() == options.tokenizer->save());
  // A vocabulary that is learned from the text cannot read them.
  options.tokenizer = nullptr;
  options.tokenizer_kind = "bpe";
  REQUIRE_THAT(notes_of_preparing({text}, out, options).at(0), ContainsSubstring("`document_separator`"));
}

TEST_CASE("what is known about a text is said before the error that follows from it") {
  const TemporaryFolder folder;
  const std::string out = folder / "t.tokens";
  const PrepareOptions divided{.sources = {}, .corpus = {.documents = {.separator = "==="}}, .out = {}};
  const std::string one = folder.write("one", "one document, and no other");
  REQUIRE_THAT(error_message<CorpusError>([&] { prepare({one}, out, divided); }), ContainsSubstring("no validation"));
  REQUIRE_THAT(notes_of_preparing({one}, out, divided).at(0), ContainsSubstring("no line is the separator"));
  REQUIRE_THAT(notes_of_preparing({folder.write("empty", "")}, out, divided).at(0), ContainsSubstring("no line"));
}

TEST_CASE("a vocabulary that a format cannot store is refused before the text is read") {
  std::string all;
  for (char32_t c = 0x20000; c < 0x20000 + 65537; ++c) append_utf8(all, c);
  const TemporaryFolder folder;
  const PrepareOptions options{.sources = {}, .tokenizer = make_tokenizer("char", all), .out = {}, .format = "nanogpt"};
  REQUIRE_THAT(error_message<Error>([&] { prepare({folder / "missing"}, folder / "out", options); }),
               ContainsSubstring("nanogpt stores ids below 65536; the vocabulary has 65537 tokens"));
}
