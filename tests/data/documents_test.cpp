// Documents: where they begin, what of them is training text, and the token that ends them.
#include "data/text/documents.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include "data/dataset/dataset.h"
#include "data/io/hash.h"
#include "data/io/utf8.h"
#include "data/text/corpus_file.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "tests/data/allocations.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The documents of a text that arrives in parts of `step` bytes.
std::vector<std::string> read(const std::string& text, const DocumentOptions& options, std::size_t step = 3) {
  std::vector<std::string> documents = {""};
  DocumentReader reader(
      options, "name", [&](std::string_view part) { documents.back() += part; }, [&] { documents.emplace_back(); });
  for (std::size_t at = 0; at < text.size(); at += step) reader.push(std::string_view(text).substr(at, step));
  reader.finish();
  documents.pop_back();
  return documents;
}

using Documents = std::vector<std::string>;

Documents texts_of(const std::vector<std::string_view>& views) { return {views.begin(), views.end()}; }

}  // namespace

TEST_CASE("a separator is a line that stands alone") {
  const DocumentOptions options{.separator = "==="};
  for (const std::size_t step : {1U, 2U, 3U, 7U, 100U}) {
    INFO(step);
    REQUIRE(read("a\nb\n===\nc\n", options, step) == Documents{"a\nb\n", "c\n"});
    REQUIRE(read("a\r\n===\r\nc", options, step) == Documents{"a\r\n", "c"});
    REQUIRE(read("a\n===", options, step) == Documents{"a\n", ""});
    REQUIRE(read("===\n===\na", options, step) == Documents{"", "", "a"});
    REQUIRE(read("a ===\n====\n==\n =\n === \n", options, step) == Documents{"a ===\n====\n==\n =\n === \n"});
    // What an editor does not show does not matter: blanks at the end, and a byte-order mark before the first line.
    REQUIRE(read("a\n=== \t\nb\n===  \r\nc", options, step) == Documents{"a\n", "b\n", "c"});
    REQUIRE(read("\uFEFF===\na\n\uFEFF===\nb", options, step) == Documents{"", "a\n\uFEFF===\nb"});
    REQUIRE(read("\uFEFFa\n===\nb", options, step) == Documents{"\uFEFFa\n", "b"});
    REQUIRE(read("a\n==\n== \nb\n", {.separator = "== "}, step) == Documents{"a\n", "", "b\n"});
    REQUIRE(read("a\n\n  \nb\n", {.separator = "  "}, step) == Documents{"a\n\n", "b\n"});
    REQUIRE(read("one long line that is not it\n===\nx\n===\n", options, step) ==
            Documents{"one long line that is not it\n", "x\n", ""});
    REQUIRE(read("", options, step) == Documents{""});
  }
  REQUIRE(read("a\n===\n", {.files = true}) == Documents{"a\n===\n"});
}

TEST_CASE("the documents of JSON lines are the strings of a field") {
  const DocumentOptions options{.json_field = "text"};
  const std::string lines =
      "{\"text\":\"a\\nb\"}\n\n  \t\r\n{\"id\":[1,{\"text\":2}],\"text\":\"\",\"more\":{\"text\":\"x\"}}\r\n"
      "{\"meta\":null, \"text\": \"\\u732b\\ud83d\\ude00\"}";
  for (const std::size_t step : {1U, 5U, 1000U}) REQUIRE(read(lines, options, step) == Documents{"a\nb", "", "猫😀"});
  REQUIRE(read("", options).empty());
  REQUIRE(read("{\"n\":1e400, \"text\":\"a\"}", options) == Documents{"a"});
}

TEST_CASE("a corpus without the separator is said to be one document per file") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t", "a tale === of cats\n");
  const CorpusOptions options{.documents = {.separator = "==="}};
  REQUIRE(load_corpus({path}, options).notes ==
          Documents{
              "no line is the separator ===, so every file is one document; a separator must stand alone on its line"});
  REQUIRE(load_corpus({path, folder.write("u", "a\n===\nb")}, options).notes.empty());
  require_refused(
      [&] { make_dataset(load_corpus({path}, options), 0.1, 4, "char"); },
      {"is one document", "no validation text is left", "name more files", "`document_separator`", "`val_fraction` 0"});
  require_refused([&] { make_dataset(load_corpus({path}), 0, 400, "char"); },
                  {"it has 19; use more text, or a model of a smaller `block_size`"});
}

TEST_CASE("lines that are not JSON objects with the field are refused by their number") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"text\":1}", "must have a string in the field text; it has a number; name another with `json_field`"},
      {"{\"text\":null}", "it has null"},
      {"{\"text\":[\"a\"]}", "it has an array"},
      {"{\"text\":{\"text\":\"a\"}}", "it has an object"},
      {"{\"text\":true}", "it has a boolean"},
      {"{\"body\":\"a\",\"title\":\"b\"}", "has no field text; it has body, title"},
      {"{}", "has no field text; it has none"},
      {"{\"a\":{\"text\":\"x\"}}", "has no field text; it has a"},
      {"{\"text\":\"a\",\"text\":\"b\"}", "has the field text twice"},
      {"[\"text\"]", "must be an object; it is an array; write one object in each line, as jq -c '.[]' does"},
      {"\"text\"", "must be an object; it is a string"},
      {"7", "must be an object; it is a number"},
      {"null", "must be an object; it is null"},
      {"{\"text\":\"a\"", "is not JSON"},
      {"{\"text\":\"a\"} x", "is not JSON"},
      {"{\"text\":\"a surrogate\tmother\"}", "is not JSON"},
      {"{\"text\":\"\\ud83d\"}", "has half of a surrogate pair at byte 16"},
      {"{\"n\":1e9999, \"text\":\"a\"}", "has a number at byte 11 that is too large"},
      {"plain text", "is not JSON: byte 1 of the line is unexpected; write one object in each line"},
      {std::string("{\"text\":\"a\"}\0", 13), "is not JSON: byte 13 of the line"},
      {std::string("{\"text\":\"a\"}\0{}", 15), "is not JSON: byte 13 of the line"},
      {std::string("{\"text\":\"a\0\"}", 13), "is not JSON: byte 11 of the line"},
      {std::string(2000, '['), "must be an object"},
      {"{\"a\":" + std::string(2000, '['), "nested more than"},
  };
  for (const auto& [line, words] : cases) {
    INFO(line.substr(0, 100));
    require_refused([&, &text = line] { read("{\"text\":\"good\"}\n" + text, {.json_field = "text"}, 64); },
                    {"name: line 2 ", words});
  }
}

TEST_CASE("options that contradict each other are refused") {
  REQUIRE_THROWS_AS((DocumentOptions{.separator = "a", .json_field = "b"}.check_valid()), Error);
  REQUIRE_THROWS_AS((DocumentOptions{.separator = "a\nb"}.check_valid()), Error);
  (DocumentOptions{.files = true, .separator = "a"}.check_valid());
  REQUIRE_THROWS_AS(load_corpus({"@stories:1000"}, {.documents = {.files = true}}), Error);
}

TEST_CASE("documents are kept whole, and those for validation are spread evenly") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += fmt::format("{{\"text\":\"story {:04}\"}}\n", i);
  const Corpus corpus = load_corpus({folder.write("a.jsonl", lines)}, {.documents = {.json_field = "text"}});
  REQUIRE(corpus.text.size() == 1000);
  REQUIRE(corpus.documents.size() == 100);
  const SplitText split = split_text(corpus, 0.1);
  Documents expected;
  for (int i = 4; i < 100; i += 10) expected.push_back(fmt::format("story {:04}", i));
  REQUIRE(texts_of(split.val) == expected);
  REQUIRE(split.train.size() == 90);
  REQUIRE(split_text(corpus, 0).val.empty());
  REQUIRE(split_text(corpus, 0).train.size() == 100);
  REQUIRE_THROWS_AS(split_text(corpus, 1), Error);
}

TEST_CASE("the share of validation text is right up to half a document, whatever their lengths") {
  REQUIRE(rc::check("share", [] {
    const double fraction = *rc::gen::element(0.01, 0.1, 0.25, 0.5);
    const auto lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(1, 1000)));
    DocumentSplit split(fraction);
    std::int64_t all = 0, validation = 0;
    for (const std::int64_t length : lengths) {
      all += length;
      if (split.is_validation(length)) validation += length;
      RC_ASSERT(std::abs(static_cast<double>(validation) - fraction * static_cast<double>(all)) <= 1000);
    }
  }));
}

TEST_CASE("the hash of many documents, or of many files, takes no memory for each") {
  const std::vector<std::size_t> none, many(300'000, 123'456'789);
  start_peak();
  REQUIRE(corpus_hash("h", many, none) != corpus_hash("h", none, many));
  REQUIRE(peak_bytes() < 100'000);
}

TEST_CASE("the hash of a corpus depends on where its documents begin, and is that of before without documents") {
  const TemporaryFolder folder;
  const std::string one = folder.write("1", "abc"), two = folder.write("2", "def");
  const std::string plain = load_corpus({one, two}).hash;
  REQUIRE(plain == hash128_hex(hash128_hex("abcdef") + " 3"));
  const std::string documents = load_corpus({one, two}, {.documents = {.files = true}}).hash;
  REQUIRE(documents != plain);
  REQUIRE(documents == hash128_hex(hash128_hex("abcdef") + " documents 0 3"));
  REQUIRE(load_corpus({folder.write("3", "abc\n|\ndef")}, {.documents = {.separator = "|"}}).hash != documents);
  REQUIRE(load_corpus({one}).hash == hash128_hex("abc"));
  REQUIRE(load_corpus({one}, {.documents = {.files = true}}).hash != hash128_hex("abc"));
}

TEST_CASE("with byte-pair encoding every document is followed by the end-of-text token, and none is a piece") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("a tale of {} cats\n---\n", i);
  const Corpus corpus = load_corpus({folder.write("t", text)}, {.documents = {.separator = "---"}});
  for (const Normalization form : {Normalization::none, Normalization::nfc}) {
    const Dataset data = make_dataset(corpus, 0.25, 4, "bpe", nullptr, {.vocab_size = 300, .normalization = form});
    const std::int32_t end = data.tokenizer->end_of_text().value();
    REQUIRE(data.train.view().joins().empty());
    std::vector<std::int32_t> expected;
    for (const std::string_view document : split_text(corpus, 0.25).train) {
      const auto ids = data.tokenizer->encode(document);
      expected.insert(expected.end(), ids.begin(), ids.end());
      expected.push_back(end);
    }
    REQUIRE(data.train.ids() == expected);
    REQUIRE(data.val.ids().back() == end);
  }
  const Dataset letters = make_dataset(corpus, 0.25, 4, "char");
  REQUIRE(letters.train.view().joins().size() == split_text(corpus, 0.25).train.size() - 1);
  const Dataset files = make_dataset(load_corpus({folder / "t"}), 0.25, 4, "bpe", nullptr, {.vocab_size = 300});
  REQUIRE(std::ranges::count(files.train.ids(), files.tokenizer->end_of_text().value()) == 0);
}

TEST_CASE("a file that is read in blocks has the text of one that is read at once, or the same error") {
  const TemporaryFolder folder;
  const auto blocks = [](const std::string& path, const CorpusOptions& options, std::size_t size) {
    std::string text;
    std::vector<std::string> notes;
    try {
      read_corpus_file(
          path, options, size,
          [&](std::string_view block) {
            REQUIRE_FALSE(invalid_utf8(block));
            text += block;
          },
          notes);
    } catch (const CorpusError& error) {
      return std::string("error: ") + error.what();
    }
    for (const std::string& note : notes) text += note;
    return text;
  };
  std::string long_text(65535, 'x');  // files are read in parts of 64 KiB
  for (int i = 0; i < 30000; ++i) long_text += "猫";
  REQUIRE(blocks(folder.write("long", long_text), {}, 1000) == long_text);
  for (const char* const mark : {"\xff\xfe", "\xfe\xff"}) {  // of another encoding, where a block begins
    const std::string marked = folder.write("marked", std::string(65536, 'x') + mark + " and more");
    for (const InvalidUtf8 invalid : {InvalidUtf8::error, InvalidUtf8::replace})
      REQUIRE(blocks(marked, {.invalid = invalid}, 1000) == blocks(marked, {.invalid = invalid}, SIZE_MAX));
  }
  std::size_t longest = 0;  // also of a text that is decoded, in which each byte becomes two
  std::vector<std::string> notes;
  read_corpus_file(
      folder.write("decoded", std::string(500'000, '\xe9')), {.encoding = "ISO-8859-1"}, 1000,
      [&](std::string_view block) { longest = std::max(longest, block.size()); }, notes);
  REQUIRE(longest > 0);
  REQUIRE(longest <= 2 * 65536);
  REQUIRE(rc::check("blocks", [&] {
    auto text = *rc::gen::container<std::string>(
        rc::gen::element('a', '\n', '\xe7', '\x8c', '\xab', '\xf0', '\x9f', '\x98', '\x80', '\xff'));
    if (*rc::gen::arbitrary<bool>()) text = replace_invalid_utf8(text);
    text = std::string(400, 'x') + text;
    const std::string path = folder.write("t", text);
    const CorpusOptions options{.invalid = *rc::gen::element(InvalidUtf8::error, InvalidUtf8::replace)};
    // Text that is in error may be one of several errors: the first block, or all of it, may look like another
    // encoding.
    const std::string whole = blocks(path, options, SIZE_MAX), parts = blocks(path, options, 1 + text.size() / 4);
    if (whole.starts_with("error: ")) {
      RC_ASSERT(parts.starts_with("error: "));
    } else {
      RC_ASSERT(parts == whole);
    }
  }));
}
