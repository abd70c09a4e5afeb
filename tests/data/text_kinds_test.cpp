// What a file looks like: kinds that are not text, text that is a list of records, and nanoGPT's vocabulary.
#include <fmt/format.h>
#include <regex>

#include "data/dataset/dataset.h"
#include "data/text/file_signature.h"
#include "data/text/text_shape.h"
#include "data/tokenizer/tokenizer_files.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

using namespace std::string_literals;

std::vector<std::string> notes_on(const std::string& text, const std::string& name, const CorpusOptions& options = {}) {
  const TemporaryFolder folder;
  return load_corpus({folder.write(name, text)}, options).notes;
}

}  // namespace

TEST_CASE("files of other kinds are named, with what to do") {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"%PDF-1.4 and so on", "is a PDF document; extract its text with: pdftotext "},
      {"\x7F"
       "ELF\2\1\1\0"s,
       "is a program; name a file of text"},
      {"MZ\x90\0\3"s, "is a program"},
      {"\x89PNG\r\n\x1A\n", "is a picture"},
      {"PK\3\4 and then [Content_Types].xml", "is an office document; convert it, for example with: pandoc"},
      {"\x80\4\x95\x1B", "is a pickle of Python"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a pointer that Git LFS left"},
      {"PK\3\4 and then text", "is compressed (zip)"},
  };
  for (const auto& [bytes, said] : kinds) {
    INFO(said);
    const std::string path = folder.write("it", bytes);
    require_refused([&] { load_corpus({path}); }, {path + ": " + said});
    require_refused([&] { load_corpus({path}, {.encoding = "ISO-8859-1"}); }, {path + ": " + said});
  }
  for (const std::string text : {"MZ is a text", "%PD", "PK", "version https://example.org"}) {
    REQUIRE(describe_other_file(text, "x").empty());
    REQUIRE(load_corpus({folder.write("text", text)}).text == text);
  }
  // The ids of a token file may begin like anything, but are no text.
  REQUIRE(prepared_corpus({folder.write("ids.bin", "MZ\0\0"s)}));
  require_refused([&] { prepared_corpus({folder.write("lfs.bin", kinds[6].first)}); }, {"lfs.bin", "git lfs pull"});
}

TEST_CASE("text that is a list of records is said to be one, with the option that fits") {
  const std::string records =
      "{\"id\": \"7\", \"body\": \"a long text\"}\n{\"id\": \"8\", \"body\": \"b\", \"more\": \"c\"}\n";
  for (const std::string mark : {"", "\uFEFF"}) {
    REQUIRE_THAT(notes_on(mark + records, "a.jsonl").at(0),
                 ContainsSubstring("a.jsonl: every line is a JSON object") &&
                     ContainsSubstring("`json_field` body (texts are in body, id)"));
  }
  REQUIRE_THAT(notes_on("{\"text\":\"a\",\"x\":\"abc\"}\n{\"text\":\"b\",\"x\":\"c\"}\n", "a").at(0),
               ContainsSubstring("`json_field` text"));
  REQUIRE_THAT(notes_on("{\"a\":[1]}\n{\"a\":[2]}\n", "a").at(0), ContainsSubstring("none of its fields is a text"));
  REQUIRE(notes_on(records, "a.jsonl", {.documents = {.json_field = "body"}}).empty());
  REQUIRE_THAT(notes_on("a\tx\nb\ty\n", "a.tsv").at(0),
               ContainsSubstring("`task` classify") && ContainsSubstring("`model` seq2seq"));
  for (const std::string list : {"[{\"text\":\"a\"}]", "\uFEFF[\n  {\n    \"text\": \"a\"\n  }\n]\n"}) {
    REQUIRE_THAT(notes_on(list, "a.json").at(0),
                 ContainsSubstring("is a list in JSON") && ContainsSubstring("a.json.new, and read these with"));
  }
  REQUIRE(notes_on("[{\"text\":\"a\"}]", "a.txt").empty());
  for (const std::string text : {"[", "[1, 2]\n", "{\"a\": [{}]}\n", "x\n[{\n"})
    REQUIRE(notes_on(text, "a.json").empty());
  REQUIRE(notes_on("a\tx\nb\ty\n", "a.tsv", {.lines = true}).empty());
  REQUIRE_THAT(load_corpus({"@copy:2"}).notes.at(0), ContainsSubstring("@copy:2: every line has one tab; to learn"));
  REQUIRE(load_corpus({"@copy:2"}, {.lines = true}).notes.empty());
  REQUIRE(load_corpus({"@stories:2000"}).notes.empty());
  REQUIRE_THAT(notes_on("a\tx\t1\nb\ty\t2\n", "a.tsv").at(0),
               ContainsSubstring("2 tabs") && ContainsSubstring("cut -f 1"));
  REQUIRE_THAT(notes_on("a,x\nb,y\n", "a.csv").at(0), ContainsSubstring("is a table (CSV)"));
  for (const std::string text :
       {"a,x\nb,y\n", "one\ttab\n", "one\ttab\nnone\n", "{\"a\":1}\n", "{\"a\":1}\n{not\n", "{ int x; }\n{ int y; }\n"})
    REQUIRE(notes_on(text, "a.txt").empty());
  std::string many;
  while (many.size() < 200'000) many += records;
  REQUIRE(notes_on(many, "a.jsonl").size() == 1);
  // The first 20 lines that are not blank decide.
  std::string first;
  for (int i = 0; i < 19; ++i) first += "a\tx\n \t\n\n";
  REQUIRE(notes_on(first + "b\ty\nnone\n", "a.tsv").size() == 1);
  REQUIRE(notes_on(first + "none\n", "a.tsv").empty());
}

TEST_CASE("text with special tokens between its documents is said to have them, with the option that reads them") {
  const std::string stories = "One.\n<|endoftext|>\nTwo.\nIt ends.\n<|endoftext|> \nThree.\n";
  REQUIRE_THAT(
      notes_on(stories, "a.txt").at(0),
      ContainsSubstring("a.txt: has lines that are <|endoftext|>; to read what stands between them as documents: "
                        "`document_separator` '<|endoftext|>'"));
  std::string late;
  for (int i = 0; i < 100; ++i) late += "a line\n";
  REQUIRE(notes_on(late + stories, "a.txt").size() == 1);
  REQUIRE(notes_on(stories, "a.txt", {.documents = {.separator = "<|endoftext|>"}}).empty());
  for (const std::string text : {"a\n<|endoftext|>\nb\n", "a <|x|>\nb <|x|>\n", "<||>\n<||>\n", "<|>\n<|>\n",
                                 "<|a b|>\n<|a b|>\n", "---\na\n---\nb\n"}) {
    INFO(text);
    REQUIRE(notes_on(text, "a.txt").empty());
  }
}

TEST_CASE("line ends of Windows are mentioned only where they are read, with a command that removes them") {
  REQUIRE_THAT(notes_on("a b\r\nc\r\n", "a").at(0),
               ContainsSubstring("2 lines end with CR and LF") && ContainsSubstring("tr -d '\\r'"));
  REQUIRE(notes_on("a\tb\r\nc\td\r\n", "a", {.lines = true}).empty());
  REQUIRE_THAT(notes_on(std::string("a\0\r\0\n\0", 6), "a", {.encoding = "UTF-16LE"}).at(0),
               ContainsSubstring("iconv -f UTF-16LE -t UTF-8 FILE | tr -d '\\r' > FILE.new"));
}

TEST_CASE("nanoGPT's meta.pkl is a character tokenizer, and nothing but its tables is read") {
  const std::string folder = MAKI_SOURCE_DIR "/tests/fixtures/";
  const TemporaryFolder scratch;
  const auto read = [&](const std::string& bytes) { return read_tokenizer(scratch.write("meta.pkl", bytes)); };
  const std::string old = read_bytes(folder + "nanogpt_meta_2.pkl"), pickle = read_bytes(folder + "nanogpt_meta_4.pkl");
  REQUIRE(read(pickle)->decode(std::vector<std::int32_t>{0, 1, 2}) == "\n .");
  REQUIRE(read(pickle)->hash() == make_tokenizer("char", "the maki unrolls.\n\u5dfb\U0001f600")->hash());
  REQUIRE(read(old)->hash() == read(pickle)->hash());
  // Numbers of two and of four bytes, and tables of one item.
  const std::regex number("K([\\s\\S])");
  REQUIRE(read(std::regex_replace(old, number, "M$1\0"s))->hash() == read(old)->hash());
  REQUIRE(read(std::regex_replace(old, number, "J$1\0\0\0"s))->hash() == read(old)->hash());
  const std::string one = "}(X\4\0\0\0itos}K\0X\1\0\0\0asX\4\0\0\0stoi}X\1\0\0\0aK\0su."s;
  REQUIRE(read(one)->hash() == make_tokenizer("char", "a")->hash());
  const auto refused = [&](std::string bytes, const std::string& words) {
    require_refused([&] { read(bytes); }, {"meta.pkl", words});
  };
  refused("cos\nsystem\n(S'true'\ntR.", "does more than to build tables");
  refused(pickle.substr(0, pickle.size() - 2), "ends too early");
  refused(std::string(1 << 20, '}'), "at most 524288 bytes");
  refused("}.", "no table itos");
  refused("K\1.", "no dictionary");
  refused("s", "an item is incomplete");
  refused("(K\1u", "an item is incomplete");
  refused("}(K\1u", "an item is incomplete");
  refused("u", "a mark is missing");
  refused(".", "a value is missing");
  refused("\x94", "a value is missing");
  refused(std::string(17, '}'), "too many tables");
  refused("}q\1.", "its numbers of values are not in order");
  refused("}q\0h\1."s, "it refers to a value that it does not have");
  refused("}(X\4\0\0\0itos}K\0K\1su."s, "a value is no string");
  // Both tables as the items of the number 0, which is an item of the dictionary 0.
  refused("}X\1\0\0\0xK\0("s + one.substr(2, one.size() - 3) + "s.", "a value is no dictionary");
  std::string swapped = pickle;  // the characters of the ids 0 and 1
  std::swap(swapped[swapped.find("\x8C\1\n") + 2], swapped[swapped.find("\x8C\1 ") + 2]);
  refused(swapped, "ascending order");
}
