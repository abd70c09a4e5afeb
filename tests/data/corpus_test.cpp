// Unusual corpora: each either gives exactly its bytes, and batches of them, or an error of one sentence. Splits by
// characters.
#include "data/text/corpus.h"

#include <cmath>
#include <sys/stat.h>
#include <thread>

#include "data/dataset/dataset.h"
#include "data/dataset/window_batches.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "data/io/utf8.h"
#include "tests/data/process_scopes.h"
#include "tests/data/require_refused.h"
#include "tests/exotic_texts.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::string repeated(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

// Requires that the text can be trained on with either tokenizer: its tokens give back all of it, and batches can be
// filled.
void require_trains(const Corpus& corpus) {
  for (const char* const kind : {"char", "byte"}) {
    const Dataset data = make_dataset(corpus, 0.5, 2, kind);
    REQUIRE((data.tokenizer->decode(data.train) + data.tokenizer->decode(data.val) == corpus.text));
    const TrainBatches batches(data.train, 2, 2, 1, 1);
    std::vector<std::int32_t> ids(4), targets(4);
    for (std::int64_t step = 0; step < 5; ++step) {
      REQUIRE(batches.fill(step, 0, ids, targets) == 4);
      for (const std::int32_t id : ids) REQUIRE((id >= 0 && id < data.tokenizer->vocab_size()));
    }
  }
}

}  // namespace

TEST_CASE("unusual texts are read byte for byte and can be trained on") {
  const TemporaryFolder folder;
  int seen = 0;
  for (const auto& [name, text] : exotic_texts()) {
    INFO(name);
    const Corpus corpus = load_corpus({folder.write(std::to_string(seen), text)});
    REQUIRE((corpus.text == text));
    REQUIRE(corpus.characters == count_code_points(text));
    REQUIRE(corpus.hash == hash128_hex(text));
    REQUIRE(corpus.story_starts.empty());
    REQUIRE_FALSE(corpus.entropy_per_char);
    require_trains(corpus);
    ++seen;
  }
  REQUIRE(seen == 13);
}

TEST_CASE("byte-order marks and line ends of Windows are reported, and kept") {
  const TemporaryFolder folder;
  const std::string marked = folder.write("1", "\uFEFFa\r\nb\r\n"), plain = folder.write("2", "a\uFEFF\nb\r");
  const Corpus corpus = load_corpus({marked, plain});
  REQUIRE(corpus.text == "\uFEFFa\r\nb\r\na\uFEFF\nb\r");
  REQUIRE(corpus.notes.size() == 2);
  REQUIRE_THAT(corpus.notes[0], ContainsSubstring("1 of 2 texts") && ContainsSubstring("U+FEFF"));
  REQUIRE_THAT(corpus.notes[1], ContainsSubstring("2 lines end with CR and LF"));
  REQUIRE(load_corpus({plain}).notes.empty());
}

TEST_CASE("the error for a file that is not text names the file and the byte") {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& bytes, const std::vector<std::string>& words) {
    const std::string path = folder.write("corpus.txt", bytes);
    require_refused([&] { load_corpus({path}); }, words);
    require_refused([&] { load_corpus({path}); }, {path});
  };
  for (const auto& [bytes, words] : files_without_text()) refuse(bytes, words);
  refuse("ab\xFF", {"`invalid_utf8` replace"});
  refuse(std::string("RIFF\x94\0\0\0WEBP", 12), {"byte 4 is not; it has zero bytes as well", "name a file of text"});
}

TEST_CASE("the error for a file of a directory also says how to leave it out") {
  const TemporaryFolder folder;
  const std::string bad = folder.write("texts/in[1].txt", "caf\xE9");
  folder.write("texts/good.txt", "text");
  const auto said = [](const std::vector<std::string>& sources) {
    return error_message<CorpusError>([&] { load_corpus(sources); });
  };
  REQUIRE_THAT(said({folder / "texts"}), Catch::Matchers::EndsWith("; to leave it out: `exclude` 'in?1].txt'"));
  REQUIRE_THAT(said({bad}), !ContainsSubstring("exclude"));
  REQUIRE(load_corpus({folder / "texts"}, {.exclude = {"in?1].txt"}}).text == "text");
}

TEST_CASE("a few ill-formed bytes are replaced on request, file by file, and counted") {
  const TemporaryFolder folder;
  // The two halves of a character at the end of one file and the beginning of the next are two errors, not a character.
  const std::string fine = repeated("fine 猫 ", 40), bytes = std::to_string(fine.size() + 2);
  const std::string first = folder.write("1", fine + "\xE7\x8C"), second = folder.write("2", "\xAB z" + fine);
  require_refused([&] { load_corpus({first, second}); }, {first, "byte " + std::to_string(fine.size())});
  const CorpusOptions replace{.invalid = InvalidUtf8::replace};
  const Corpus corpus = load_corpus({first, second}, replace);
  REQUIRE(corpus.text == fine + "\uFFFD\uFFFD z" + fine);
  REQUIRE(corpus.notes.size() == 2);
  REQUIRE(corpus.notes[0] == first + ": replaced 2 of " + bytes + " bytes, which were not UTF-8, with U+FFFD");
  const Corpus untouched = load_corpus({folder.write("4", "fine 猫")}, replace);
  REQUIRE(untouched.text == "fine 猫");
  REQUIRE(untouched.notes.empty());
  // Exactly 1 % of the bytes is still replaced, more is rejected.
  REQUIRE(load_corpus({folder.write("5", std::string(99, 'a') + "\x80")}, replace).notes.size() == 1);
  require_refused([&] { load_corpus({folder.write("6", std::string(98, 'a') + "\x80")}, replace); },
                  {"1 of its 99 bytes", "at most 1 %", "`encoding`"});
  require_refused([&] { load_corpus({folder.write("7", "\xFF\xFE" + std::string(1000, 'a'))}, replace); }, {"UTF-16"});
}

TEST_CASE("sources are joined without a separator, in the given order") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a", "one"), b = folder.write("b", ""), c = folder.write("c", "three");
  const Corpus corpus = load_corpus({c, b, a, c});
  REQUIRE(corpus.text == "threeonethree");
  REQUIRE(corpus.sources == std::vector<std::string>{c, b, a, c});
  // The joins are part of the identity of a corpus. The identity of a single file, however it is given, is that of its
  // text.
  const Corpus one = load_corpus({b, folder.write("d", "threeonethree"), b});
  REQUIRE(corpus.joins == std::vector<std::size_t>{5, 8});
  REQUIRE(corpus.files == std::vector<std::string>{c, a, c});  // an empty file is no part of the text
  REQUIRE(one.joins.empty());
  REQUIRE(one.files == std::vector<std::string>{folder / "d"});
  REQUIRE(one.hash == hash128_hex("threeonethree"));
  REQUIRE(corpus.hash != one.hash);
  REQUIRE(corpus.hash != load_corpus({a, c}).hash);
  require_refused([&] { load_corpus({b, b}); }, {"empty"});
  require_refused([] { load_corpus({}); }, {"corpus"});
}

TEST_CASE("a source that cannot be read is named, with the system's reason") {
  const TemporaryFolder folder;
  namespace fs = std::filesystem;
  require_refused([&] { load_corpus({folder / "missing"}); }, {folder / "missing", "No such file"});
  fs::create_symlink(folder / "self", folder / "self");
  require_refused([&] { load_corpus({folder / "self"}); }, {folder / "self", "symbolic links"});
  require_refused([&] { load_corpus({folder.write("file", "x") + "/below"}); }, {"Not a directory"});
  for (const std::string device : {"/dev/zero", "/dev/null"})
    require_refused([&] { load_corpus({device}); }, {device, "device"});
  require_refused([&] { read_file(folder.path()); }, {folder.path(), "directory"});
  require_refused([] { load_corpus({""}); }, {"No such file"});

  const std::string secret = folder.write("closed/secret", "x");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(secret, fs::perms::none);
  const DroppedPrivileges nobody;
  require_refused([&] { load_corpus({secret}); }, {secret, "Permission denied"});
}

TEST_CASE("pipes and standard input") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe", text = repeated("吾輩は猫である。\n", 20000);  // several buffers
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
  const Corpus corpus = load_corpus({pipe});
  writer.join();
  REQUIRE((corpus.text == text));

  const std::string a = folder.write("a", "before "), b = folder.write("b", " after");
  {
    const StandardInputFrom input(folder.write("in", "within"));
    REQUIRE(load_corpus({a, "-", b}).text == "before within after");
  }
  const StandardInputFrom input(folder.write("bad", "x\xFF"));
  require_refused([] { load_corpus({"-"}); }, {"standard input", "byte 1 "});
}

TEST_CASE("the validation part is a fraction of the characters, not of the bytes") {
  const TemporaryFolder folder;
  for (const std::string& piece : std::vector<std::string>{"a", "猫", "aé猫😀"}) {
    const Corpus corpus = load_corpus({folder.write("text", repeated(piece, 250))});
    for (const double fraction : {0.1, 0.25, 0.5, 1.0 / 3, 0.999}) {
      const std::string val(split_text(corpus, fraction).val.at(0));
      REQUIRE_FALSE(invalid_utf8(val));
      REQUIRE(count_code_points(val) == std::llround(static_cast<double>(corpus.characters) * fraction));
    }
    REQUIRE(split_text(corpus, 0).val.empty());
  }
  const Corpus corpus = load_corpus({folder.write("text", "abc")});
  for (const double fraction : {-0.1, 1.0, 1.5, std::nan("")}) REQUIRE_THROWS_AS(split_text(corpus, fraction), Error);
}

TEST_CASE("a mark that normalization may combine with the last letter of the training text stays with it") {
  const TemporaryFolder folder;
  const auto split = [&](const std::string& text, Normalization form) {
    const Corpus corpus = load_corpus({folder.write("text", text)});
    const SplitText parts = split_text(corpus, 0.5, form);
    return std::string(parts.train.at(0)) + "|" + (parts.val.empty() ? "" : std::string(parts.val[0]));
  };
  REQUIRE(split("abe\u0301cd", Normalization::none) == "abe|\u0301cd");
  REQUIRE(split("abe\u0301cd", Normalization::nfc) == "abe\u0301|cd");
  REQUIRE(split("abe\u0301\u0323d", Normalization::nfc) == "abe\u0301\u0323|d");
  REQUIRE(split("xﾌﾟﾛ", Normalization::nfc) == "xﾌ|ﾟﾛ");
  REQUIRE(split("xﾌﾟﾛ", Normalization::nfkc) == "xﾌﾟ|ﾛ");
  REQUIRE(split("e\u0301", Normalization::nfc) == "e\u0301|");
}

TEST_CASE("stories: whole ones, of the requested size, with their entropy, split between two stories") {
  for (const std::string& name : std::vector<std::string>{"@stories", "@stories-ja"}) {
    const Corpus corpus = load_corpus({name + ":20000"});
    REQUIRE(corpus.characters >= 20000);
    REQUIRE(corpus.characters < 25000);
    REQUIRE(corpus.entropy_per_char.value() > 0);
    REQUIRE(corpus.story_starts.size() > 4);
    REQUIRE(corpus.story_starts.front() == 0);
    REQUIRE(corpus.hash == load_corpus({name + ":20000"}).hash);
    const std::size_t asked =
        byte_offset(corpus.text, corpus.characters - std::llround(static_cast<double>(corpus.characters) * 0.1));
    const auto split_at = [&](double fraction) { return split_text(corpus, fraction).train.at(0).size(); };
    const std::size_t split = split_at(0.1);
    REQUIRE(split < corpus.text.size());
    // The split is at the first story that begins at the requested character or after it.
    REQUIRE(split == *std::ranges::find_if(corpus.story_starts, [&](std::size_t start) { return start >= asked; }));
    REQUIRE(split_at(0) == corpus.text.size());
    REQUIRE(split_at(1e-9) == corpus.story_starts.back());  // at least one story
    require_trains(corpus);
  }
  REQUIRE(load_corpus({"@stories:1"}).story_starts.size() == 1);
}

TEST_CASE("built-in corpora that do not exist are rejected") {
  for (const std::string& bad :
       std::vector<std::string>{"@stories:0", "@stories:-5", "@stories:", "@stories:abc", "@stories:1e3",
                                "@stories:10 ", "@stories:99999999999999999999", "@stories:1000000001"}) {
    require_refused([&] { load_corpus({bad}); }, {bad, "between 1 and 1000000000"});
  }
  require_refused([] { load_corpus({"@storys"}); }, {"@storys", "@stories-ja", "./@storys"});
  require_refused([] { load_corpus({"@"}); }, {"@stories"});
  const TemporaryFolder folder;
  const std::string file = folder.write("a", "x");
  require_refused([&] { load_corpus({file, "@stories"}); }, {"@stories", "cannot be combined with other sources"});
  require_refused(
      [&] {
        load_corpus({"@stories", "@stories-ja"});
      },
      {"@stories", "cannot be combined with other sources"});
}

TEST_CASE("the corpora that maki is developed with") {
  int seen = 0;
  for (const std::string name : {"tinyshakespeare.txt", "neko.ja.txt"}) {
    const std::string path = std::string(MAKI_SOURCE_DIR) + "/../shared/corpora/" + name;
    if (!std::filesystem::exists(path)) {
      WARN("skipped, there is no " << name);
      continue;
    }
    const Corpus corpus = load_corpus({path});
    const Dataset data = make_dataset(corpus, 0.1, 64, "char");
    REQUIRE((data.tokenizer->decode(data.train) + data.tokenizer->decode(data.val) == corpus.text));
    if (name == "tinyshakespeare.txt") {
      REQUIRE(data.tokenizer->vocab_size() == 65);
      REQUIRE(data.train.size() == 1003855);
      REQUIRE(data.val.size() == 111539);
    }
    ++seen;
  }
  SUCCEED(seen << " corpora");
}
