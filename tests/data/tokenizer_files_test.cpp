// Tokenizers in the files of other programs: what is written is read back, and malformed files are named errors that
// take little memory.
#include "data/tokenizer/tokenizer_files.h"

#include <nlohmann/json.hpp>
#include <random>
#include <rapidcheck.h>
#include <sys/stat.h>

#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_characters.h"
#include "data/tokenizer/special_text.h"
#include "data/tokenizer/vocabulary_text.h"
#include "tests/data/allocations.h"
#include "tests/data/bpe_fixture.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

using nlohmann::json;

std::unique_ptr<Tokenizer> fixture_tokenizer() { return read_tokenizer(BpeFixture::tokenizer_path()); }

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// A vocab.json and merges.txt, as GPT-2 has them.
void write_vocabulary(const TemporaryFolder& folder, const Tokenizer& tokenizer, const char* vocab,
                      const char* merges) {
  const BpeVocabulary vocabulary = bpe_vocabulary(tokenizer);
  json ids = json::object();
  for (const std::string& token : vocabulary.tokens) ids[token] = ids.size();
  folder.write(vocab, ids.dump());
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : vocabulary.merges) lines += merge + "\n";
  folder.write(merges, lines);
}

std::string tiktoken_lines(const Tokenizer& tokenizer) {
  std::string lines;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (id != tokenizer.end_of_text()) lines += fmt::format("{} {}\n", base64(tokenizer.bytes(id)), id);
  }
  return lines;
}

json small_tokenizer_json() { return json::parse(tokenizer_json(BpeTokenizer(learn_bpe("the cat the cat", 262)))); }

}  // namespace

TEST_CASE("GPT-2's characters for bytes") {
  REQUIRE(to_byte_characters(std::string_view(" \n\t\0\x7F\xA0\xAD", 7)) == "ĠĊĉĀġłŃ");
  REQUIRE(to_byte_characters("!~¡") == "!~Â¡");
  REQUIRE(bytes_by_character()[0] == '!');
  REQUIRE(bytes_by_character()[188] == 0);
  REQUIRE(bytes_by_character()[198] == '\n');
  REQUIRE(bytes_by_character()[220] == ' ');
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  REQUIRE(from_byte_characters(to_byte_characters(all)) == all);
  for (const char* const bad : {" ", "\n", "\u0144", "\u00ad", "吾", "\xFF", "a\u2581"})
    REQUIRE_FALSE(from_byte_characters(bad).has_value());
}

TEST_CASE("a tokenizer.json that was written is read back, in every variant") {
  BpeParts parts = learn_bpe("the cat the cat 'tis", 262);
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const std::string& rule : PreTokenizer::rules()) {
    parts.rule = rule;
    parts.whole_pieces = rule == "cl100k";
    tokenizers.push_back(std::make_unique<BpeTokenizer>(parts));
  }
  for (const Normalization form : {Normalization::nfc, Normalization::nfkc})
    tokenizers.push_back(make_tokenizer("bpe", "the cat the cat", {.vocab_size = 262, .normalization = form}));
  tokenizers.push_back(fixture_tokenizer());
  for (const auto& tokenizer : tokenizers) {
    const std::string text = tokenizer_json(*tokenizer);
    REQUIRE(read_tokenizer_json(text)->hash() == tokenizer->hash());
    REQUIRE(tokenizer_json(*read_tokenizer_json(text)) == text);
  }
  const auto bytes = make_tokenizer("byte", "");
  const auto read = read_tokenizer_json(tokenizer_json(*bytes));
  REQUIRE(read->vocab_size() == 256);
  REQUIRE(read->encode("aé\xFF") == bytes->encode("aé\xFF"));
  REQUIRE_FALSE(read->end_of_text().has_value());
}

TEST_CASE("only byte-level BPE and bytes can be written for other programs") {
  for (const char* const kind : {"char", "word"}) {
    const auto tokenizer = make_tokenizer(kind, "ab ab");
    require_refused([&] { tokenizer_json(*tokenizer); }, {kind});
    require_refused([&] { bpe_vocabulary(*tokenizer); }, {kind});
  }
}

TEST_CASE("merges may be strings or pairs") {
  json document = small_tokenizer_json();
  const auto pairs = read_tokenizer_json(document.dump());
  for (json& merge : document["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  REQUIRE(read_tokenizer_json(document.dump())->hash() == pairs->hash());
}

TEST_CASE("added tokens that the vocabulary lacks are special tokens behind it") {
  json document = small_tokenizer_json();
  document["added_tokens"].push_back({{"id", 262}, {"content", "<pad> 終"}});
  const auto tokenizer = read_tokenizer_json(document.dump());
  REQUIRE(tokenizer->vocab_size() == 263);
  REQUIRE(tokenizer->bytes(262) == "<pad> 終");
  REQUIRE(tokenizer->encode_with_specials("<pad> 終") == std::vector<std::int32_t>{262});
  REQUIRE(tokenizer->end_of_text() == 261);
  // Written, the vocabulary has both.
  REQUIRE(read_tokenizer_json(tokenizer_json(*tokenizer))->save() == tokenizer->save());
}

TEST_CASE("vocab.json with merges.txt gives the same tokenizer, by any of its names") {
  const auto expected = fixture_tokenizer();
  const TemporaryFolder folder, old;
  write_vocabulary(folder, *expected, "vocab.json", "merges.txt");
  write_vocabulary(old, *expected, "encoder.json", "vocab.bpe");
  for (const std::string& path :
       {folder.path(), folder / "vocab.json", folder / "merges.txt", old.path(), old / "vocab.bpe"}) {
    const auto tokenizer = read_tokenizer(path);
    REQUIRE(tokenizer->hash() == expected->hash());
    REQUIRE(tokenizer->end_of_text() == expected->end_of_text());
  }
}

TEST_CASE("a merges.txt that lacks merges of the vocabulary is refused") {
  const TemporaryFolder folder;
  write_vocabulary(folder, *fixture_tokenizer(), "vocab.json", "merges.txt");
  const std::string merges = read_bytes(folder / "merges.txt");
  const std::string last = bpe_vocabulary(*fixture_tokenizer()).tokens.at(999);
  for (const std::string& less : {merges.substr(0, merges.rfind('\n', merges.size() - 2) + 1), std::string()}) {
    folder.write("merges.txt", less);
    require_refused([&] { read_tokenizer(folder.path()); },
                    {folder.path(), "merges.txt", "does not make " + (less.empty() ? "" : last + ";"), "whole file"});
  }
}

TEST_CASE("a .tiktoken file gives the same ids") {
  const auto expected = fixture_tokenizer();
  const TemporaryFolder folder;
  const std::string path = folder.write("small.tiktoken", tiktoken_lines(*expected));
  const BpeFixture fixture;
  for (const std::string& source : {path, folder.path()}) {
    const auto tokenizer = read_tokenizer(source);
    REQUIRE(tokenizer->vocab_size() == expected->vocab_size() - 1);
    for (std::size_t i = 0; i < 500; ++i) {
      if (tokenizer->encode(fixture.strings()[i]) != expected->encode(fixture.strings()[i])) FAIL("string " << i);
    }
  }
}

namespace {

// The bytes, all pairs of bytes, and pairs with a third byte.
std::string tiktoken_of_pairs(int ranks) {
  std::string lines;
  for (int i = 0; i < ranks; ++i) {
    const auto byte = [i](int shift) { return static_cast<char>((i - 256) >> shift & 255); };
    const std::string token = i < 256 ? std::string(1, static_cast<char>(i)) : std::string{byte(8), byte(0)};
    lines += fmt::format("{} {}\n", base64(i < 256 + 65'536 ? token : token + byte(16)), i);
  }
  return lines;
}

}  // namespace

TEST_CASE("a .tiktoken file with as many ranks as a published one cuts texts as that does") {
  const std::vector<std::tuple<int, const char*, bool>> published = {
      {50'255, "gpt2", false},  {50'256, "gpt2", true},    {100'256, "cl100k", false}, {128'000, "cl100k", false},
      {151'643, "qwen2", true}, {199'998, "o200k", false}, {200'000, "o200k", false}};
  const TemporaryFolder folder;
  for (const auto& [ranks, rule, end_of_text] : published) {
    const auto tokenizer = read_tokenizer(folder.write("ranks.tiktoken", tiktoken_of_pairs(ranks)));
    REQUIRE(tokenizer->bpe_parts()->rule == rule);
    REQUIRE(tokenizer->vocab_size() == ranks + end_of_text);
    REQUIRE((tokenizer->end_of_text() == ranks) == end_of_text);
    REQUIRE(tokenizer->bpe_parts()->whole_pieces == (ranks == 128'000));
    REQUIRE((tokenizer->normalization() == Normalization::nfc) == (ranks == 151'643));
  }
}

TEST_CASE(
    "the file of Llama 3 has tokens that occur as whole pieces alone, and joins any two tokens that make up one") {
  const TemporaryFolder folder;
  const auto id_of_pair = [](char first, char second) { return 256 + 256 * first + second; };
  const std::string lines = tiktoken_of_pairs(127'999), whole = base64("abcde") + " ";
  const auto tokenizer = read_tokenizer(folder.write("tokenizer.model", lines + whole + "127999\n"));
  REQUIRE(tokenizer->encode("abcde") == std::vector<std::int32_t>{127'999});  // ab cd e otherwise
  REQUIRE(tokenizer->encode("abcdef") ==
          std::vector<std::int32_t>{id_of_pair('a', 'b'), id_of_pair('c', 'd'), id_of_pair('e', 'f')});
  // One merge of each pair, and two of each pair with a third byte.
  REQUIRE(std::ssize(tokenizer->bpe_parts()->merges) == 65'536 + 2 * (127'999 - 256 - 65'536));
  REQUIRE(read_tokenizer_json(tokenizer_json(*tokenizer))->save() == tokenizer->save());
  require_refused(
      [&] { read_tokenizer(folder.write("a.tiktoken", lines + whole + "127999\n" + base64("x0 ") + " 128000\n")); },
      {"the token of rank 127999 must consist of two tokens of lower rank; it consists of 3"});
  require_refused(
      [&] { read_tokenizer(folder.write("a.tiktoken", lines + base64(std::string(257, 'a')) + " 127999\n")); },
      {"may have at most 256 bytes; that of rank 127999 has 257"});
  // Parts of a text are made up of two others in as many ways as they are long.
  std::mt19937_64 random(1);
  std::string text(900, '\0'), parts = tiktoken_of_pairs(256 + 65'536);
  for (char& c : text) c = static_cast<char>(random());
  int rank = 256 + 65'536;
  for (std::size_t size = 3; rank < 128'000; ++size) {
    for (std::size_t at = 0; at + size <= text.size() && rank < 128'000; ++at)
      parts += fmt::format("{} {}\n", base64(text.substr(at, size)), rank++);
  }
  require_refused([&] { read_tokenizer(folder.write("a.tiktoken", parts)); },
                  {"128000 tokens may be made up of two others in at most 1024000 ways; there are more"});
}

TEST_CASE("the saved form of any tokenizer is a tokenizer file, and the first for which a directory is searched") {
  const TemporaryFolder folder;
  folder.write("vocab.json", "is not read");
  for (const char* const kind : {"char", "byte", "word", "bpe"}) {
    const auto tokenizer = make_tokenizer(kind, "the cat the cat");
    folder.write("maki-tokenizer", tokenizer->save());
    REQUIRE(read_tokenizer(folder / "maki-tokenizer")->hash() == tokenizer->hash());
    REQUIRE(read_tokenizer(folder.path())->hash() == tokenizer->hash());
  }
}

TEST_CASE("a saved tokenizer and a tokenizer.json in one directory are the same, or both are refused") {
  const TemporaryFolder folder;
  const auto refused = [&] {
    require_refused([&] { read_tokenizer(folder.path()); },
                    {folder.path(), "maki-tokenizer and tokenizer.json must be the same", "name the file"});
  };
  std::vector<std::shared_ptr<const Tokenizer>> tokenizers = {
      make_tokenizer("byte", ""), fixture_tokenizer(),
      make_tokenizer("bpe", "the cat the cat", {.vocab_size = 262, .normalization = Normalization::nfc})};
  tokenizers.push_back(finding_specials(*tokenizers[1]));  // which a tokenizer.json does not say
  for (const auto& tokenizer : tokenizers) {
    folder.write("maki-tokenizer", tokenizer->save());
    json document = json::parse(tokenizer_json(*tokenizer));
    folder.write("tokenizer.json", document.dump());
    REQUIRE(read_tokenizer(folder.path())->hash() == tokenizer->hash());
    json unreadable = document;
    unreadable["normalizer"] = {{"type", "Lowercase"}};
    folder.write("tokenizer.json", unreadable.dump());
    refused();
    require_refused([&] { read_tokenizer(folder.path()); }, {"the latter cannot be read", "Lowercase"});
    document["added_tokens"].push_back({{"id", tokenizer->vocab_size()}, {"content", "<pad>"}});
    folder.write("tokenizer.json", document.dump());
    refused();
    REQUIRE(read_tokenizer(folder / "tokenizer.json")->vocab_size() == tokenizer->vocab_size() + 1);
    REQUIRE(read_tokenizer(folder / "maki-tokenizer")->hash() == tokenizer->hash());
  }
  const auto characters = make_tokenizer("char", "ab");
  folder.write("maki-tokenizer", characters->save());
  refused();
  folder.write("tokenizer.json", R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}}})");
  REQUIRE(read_tokenizer(folder.path())->hash() == characters->hash());
}

TEST_CASE("a pipe among the files of a tokenizer is not waited for") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name) {
    REQUIRE(mkfifo((folder / name).c_str(), 0600) == 0);
    require_refused([&] { read_tokenizer(folder.path()); }, {name + ": is not a regular file"});
  };
  refused("small.tiktoken");
  write_vocabulary(folder, *fixture_tokenizer(), "vocab.json", "merges.txt");
  std::filesystem::remove(folder / "merges.txt");
  refused("merges.txt");
}

TEST_CASE("what a tokenizer.json asks for and cannot have is refused by name") {
  struct Case {
    std::string pointer;
    json value;
    std::vector<std::string> words;
  };
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", "\\w+"}}}, {"behavior", "Isolated"}, {"invert", false}};
  const json plain = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const std::vector<Case> cases = {
      {"/model/type", "Unigram", {"BPE", "Unigram"}},
      {"/model/type", "WordPiece", {"BPE", "WordPiece"}},
      {"/model/type", 3, {"BPE", "3"}},
      {"/model/dropout", 0.1, {"dropout", "0.1"}},
      {"/model/continuing_subword_prefix", "##", {"continuing_subword_prefix", "##"}},
      {"/model/end_of_word_suffix", "</w>", {"end_of_word_suffix", "</w>"}},
      {"/model/byte_fallback", true, {"byte_fallback"}},
      {"/model", 5, {"model"}},
      {"/model/vocab", json::object(), {"vocabulary"}},
      {"/model/vocab", json::array({json::array({"a", -1.5})}), {"id"}},
      {"/model/vocab/a", -1, {"a", "-1"}},
      {"/model/vocab/a", 1.5, {"a", "1.5"}},
      {"/model/vocab/a", 4294967296, {"a", "4294967296"}},
      {"/model/vocab/a", "1", {"a", "\"1\""}},
      {"/model/vocab", json::array({1}), {"vocabulary", "object"}},
      {"/model/merges", {{"0", "t h"}}, {"merges", "list"}},
      {"/model/merges", "t h", {"merges", "list", "t h"}},
      {"/model/merges", nullptr, {"merges", "list", "null"}},
      {"/model/vocab/a", json::array({1}), {"a", "list"}},
      {"/model/vocab/a", json::object(), {"a", "object"}},
      {"/model/vocab/a", 1, {"id", "repeated", "1"}},
      {"/model/vocab/a", 400, {"id", "missing"}},
      {"/model/vocab/吾", 262, {"吾"}},
      {"/model/vocab/", 262, {"characters that stand for bytes"}},
      {"/model/merges/0", 5, {"merge"}},
      {"/model/merges/0", json::array({"a"}), {"merge", "two"}},
      {"/model/merges/0", json::array({"a", "b", "c"}), {"merge", "two"}},
      {"/model/merges/0", json::array({"a", 1}), {"merge", "two"}},
      {"/model/merges/0", json::array({"a", json::array({"b"})}), {"merge"}},
      {"/model/merges/0", json::object(), {"merge"}},
      {"/model/merges/0", "ab", {"merge", "space", "ab"}},
      {"/model/merges/0", "a b c", {"merge", "space", "a b c"}},
      {"/model/merges/0", "a 吾", {"merge", "吾"}},
      {"/model/merges/0", "Q Q", {"vocabulary", "Q Q"}},
      {"/model/merges/0", "QQ a", {"vocabulary", "QQ"}},
      {"/model/merges/1", json::array({"c", "a"}), {"merge"}},
      {"/normalizer", {{"type", "Lowercase"}}, {"normalizer", "Lowercase"}},
      {"/normalizer", "NFC", {"normalizer", "NFC"}},
      {"/pre_tokenizer", nullptr, {"pre_tokenizer", "ByteLevel"}},
      {"/pre_tokenizer", {{"type", "Metaspace"}}, {"pre_tokenizer", "Metaspace"}},
      {"/pre_tokenizer/add_prefix_space", true, {"pre_tokenizer", "add_prefix_space"}},
      {"/pre_tokenizer/use_regex", false, {"pre_tokenizer", "use_regex"}},
      {"/pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", json::array({split, plain})}},
       {"pre_tokenizer", "\\w+"}},
      {"/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", json::array()}}, {"pre_tokenizer"}},
      {"/pre_tokenizer", {{"type", "Sequence"}}, {"pre_tokenizer"}},
      {"/decoder", {{"type", "Metaspace"}}, {"decoder", "Metaspace"}},
      {"/added_tokens", 1, {"added_tokens"}},
      {"/added_tokens/0", 1, {"added_tokens"}},
      {"/added_tokens/0/content", "", {"added_tokens"}},
      {"/added_tokens/0/content", "a", {"special", "a"}},
      {"/added_tokens/0/content", "the", {"special"}},
      {"/added_tokens/0/id", 5, {"special", "5", "261"}},
      {"/added_tokens/0/id", -1, {"added_tokens", "-1"}},
      {"/added_tokens/0/id", 1e30, {"added_tokens"}},
  };
  for (const Case& each : cases) {
    json document = small_tokenizer_json();
    document[json::json_pointer(each.pointer)] = each.value;
    INFO(each.pointer << " = " << each.value);
    require_refused([&] { read_tokenizer_json(document.dump()); }, each.words);
  }
}

TEST_CASE("an added token that merges make is refused by its text") {
  json document = small_tokenizer_json();
  const json id = document["model"]["vocab"].at("the");
  document["added_tokens"].push_back({{"id", id}, {"content", "the"}});
  require_refused([&] { read_tokenizer_json(document.dump()); },
                  {"no merge may contain an added token", "contains the, which is added with the id " + id.dump()});
}

TEST_CASE("malformed texts are refused") {
  const std::string good = small_tokenizer_json().dump();
  REQUIRE(read_tokenizer_json(good)->vocab_size() == 262);
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("{}"), good + "x",
        good.substr(0, good.size() / 2), std::string("{\"a\":1e999}"), std::string("{\"a\":\"\xFF\"}"),
        std::string(30, '['), good + std::string(1, '\0'), good + std::string("\0x", 2)}) {
    INFO(bad.substr(0, 60));
    require_refused([&] { read_tokenizer_json(bad); }, {"tokenizer"});
  }
  const TemporaryFolder folder;
  const std::string a = base64("a") + " ", all = tiktoken_lines(*make_tokenizer("byte", ""));
  const std::vector<std::string> bad_lines = {"",
                                              "x",
                                              a,
                                              a + "1",
                                              a + "0",
                                              a + "0x",
                                              "YQ 0",
                                              "Y@== 0",
                                              " 0",
                                              a + "-1",
                                              all + base64("ab") + " 257\n",
                                              all + base64("abc") + " 256\n",
                                              all + base64("a") + " 256\n",
                                              all + "\n" + base64("ab") + " 256\n"};
  for (const std::string& bad : bad_lines) {
    const std::string path = folder.write("bad.tiktoken", bad);
    INFO(bad.substr(0, 60));
    require_refused([&] { read_tokenizer(path); }, {"bad.tiktoken", "token"});
  }
  write_vocabulary(folder, *fixture_tokenizer(), "vocab.json", "merges.txt");
  for (const std::string& bad : {std::string("[]"), std::string("{\"a\": 0}"), std::string("{\"a\": {}}")}) {
    folder.write("vocab.json", bad);
    require_refused([&] { read_tokenizer(folder / "vocab.json"); }, {"vocab.json", "tokenizer"});
  }
  require_refused([&] { read_tokenizer(folder.write("x.txt", "x")); }, {"x.txt", "tiktoken"});
  const std::string sentence_piece("\n\x0E\n\x05<unk>\x15\0\0\0\0\x18\x02", 16);
  require_refused([&] { read_tokenizer(folder.write("tokenizer.model", sentence_piece)); },
                  {"tokenizer.model", "SentencePiece", "tokenizer.json"});
  require_refused([&] { read_tokenizer(folder / "missing.json"); }, {"missing.json"});
  std::filesystem::create_directory(folder / "empty");
  require_refused([&] { read_tokenizer(folder / "empty"); }, {"empty", "tokenizer.json"});
}

TEST_CASE("files with changed bytes are read or refused, and nothing else") {
  const BpeTokenizer small(learn_bpe("the cat the cat", 262));
  const TemporaryFolder folder;
  write_vocabulary(folder, small, "vocab.json", "merges.txt");
  const std::string vocab = read_bytes(folder / "vocab.json"), merges = read_bytes(folder / "merges.txt");
  const std::string json_text = tokenizer_json(small), ranks = tiktoken_lines(small);
  int read = 0, refused = 0;
  const auto try_changed = [&](std::string text, const std::vector<std::uint32_t>& changes, const auto& reader) {
    constexpr std::string_view kLikely = "\"{}[],:0123456789 \n\\ua";
    for (const std::uint32_t change : changes) {
      const std::size_t at = change / 512 % (text.size() + 1);
      const char byte = change % 2 == 0 ? kLikely[change / 2 % kLikely.size()] : static_cast<char>(change / 2 % 256);
      if (change % 3 == 0)
        text.insert(at, 1, byte);
      else if (at < text.size() && change % 3 == 1)
        text[at] = byte;
      else
        text.erase(at, 1 + change % 7);
    }
    try {
      const std::unique_ptr<Tokenizer> tokenizer = reader(text);
      REQUIRE(tokenizer->decode(tokenizer->encode(text)) == text);
      ++read;
    } catch (const CorpusError&) {
      ++refused;
    }
  };
  REQUIRE(rc::check([&](const std::vector<std::uint32_t>& changes) {
    try_changed(json_text, changes, [](const std::string& text) { return read_tokenizer_json(text); });
    try_changed(ranks, changes, [](const std::string& text) { return read_tiktoken(text); });
    const auto pair = [](const std::string& first, const std::string& second) {
      VocabularyText text;
      text.unreachable_are_special = true;
      read_vocab_json(first, text);
      read_merges_text(second, text);
      return make_tokenizer(std::move(text));
    };
    try_changed(vocab, changes, [&](const std::string& text) { return pair(text, merges); });
    try_changed(merges, changes, [&](const std::string& text) { return pair(vocab, text); });
  }));
  REQUIRE(read > 0);
  REQUIRE(refused > 100);
}

TEST_CASE("reading takes less memory than 8 times the size of the file and 16 MiB") {
  constexpr std::int64_t kBytes = 3'000'000;
  const auto many = [](const std::string& head, const auto& part, const std::string& tail) {
    std::string text = head;
    for (int i = 0; std::ssize(text) < kBytes; ++i) text += part(i);
    return text + tail;
  };
  const std::vector<std::string> texts = {
      many(
          "{\"a\":", [](int) { return "["; }, ""),
      many(
          "{\"a\":[", [](int) { return "1,"; }, "1]}"),
      many(
          "{\"a\":{", [](int i) { return fmt::format("\"{}\":0,", i); }, "\"\":0}}"),
      many(
          "{\"added_tokens\":[", [](int) { return "{},"; }, "{}]}"),
      many(
          "{\"model\":{\"vocab\":{", [](int i) { return fmt::format("\"{}\":{},", i, i); }, "\"x\":0}}}"),
      many(
          "{\"model\":{\"merges\":[", [](int) { return "\"a b\","; }, "\"a b\"]}}"),
      many(
          "{\"model\":{\"merges\":[", [](int) { return "[\"a\",\"b\"],"; }, "[\"a\",\"b\"]]}}"),
      many(
          "{\"a\":\"", [](int) { return "xxxxxxxxxxxxxxxx"; }, "\"}"),
  };
  for (const std::string& text : texts) {
    INFO(text.substr(0, 50));
    start_peak();
    require_refused([&] { read_tokenizer_json(text); }, {"tokenizer"});
    REQUIRE(peak_bytes() < 8 * std::ssize(text) + (16 << 20));
  }
}
