// Texts in other encodings: the error names the command that converts them, and --encoding reads them.
#include "data/text/encoding.h"

#include <iconv.h>

#include "data/text/corpus.h"
#include "data/text/corpus_file.h"
#include "tests/data/process_scopes.h"
#include "tests/data/require_refused.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kJapanese =
    "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で\n"
    "ニャーニャー泣いていた事だけは記憶している。\n";
const std::string kFrench = "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë.\n";
const std::string kLatin = "Où est la bibliothèque? Schöne Grüße aus Zürich, el niño español.\n";
const std::string kEnglish = "The quick brown fox jumps over the lazy dog.\r\n";

std::string encoded(const std::string& text, const std::string& encoding) {
  const iconv_t converter = iconv_open(encoding.c_str(), "UTF-8");
  if (converter == reinterpret_cast<iconv_t>(-1)) throw std::runtime_error("iconv does not know " + encoding);
  std::string from = text, to(4 * text.size() + 16, '\0');
  char *in = from.data(), *out = to.data();
  std::size_t left = from.size(), room = to.size();
  const bool done = iconv(converter, &in, &left, &out, &room) != static_cast<std::size_t>(-1) &&
                    iconv(converter, nullptr, nullptr, &out, &room) != static_cast<std::size_t>(-1);
  iconv_close(converter);
  if (!done) throw std::runtime_error("cannot be encoded in " + encoding);
  to.resize(to.size() - room);
  return to;
}

struct Sample {
  std::string encoding, text, recognised;  // recognised: the name that is reported, usually the same
};

std::vector<Sample> samples() {
  return {{"SHIFT_JIS", kJapanese, "SHIFT_JIS"}, {"CP932", kJapanese + "①と髙橋～", "CP932"},
          {"EUC-JP", kJapanese, "EUC-JP"},       {"ISO-2022-JP", kJapanese, "ISO-2022-JP"},
          {"UTF-16", kJapanese, "UTF-16"},       {"UTF-16LE", kJapanese, "UTF-16LE"},
          {"UTF-16BE", kJapanese, "UTF-16BE"},   {"UTF-16LE", kEnglish, "UTF-16LE"},
          {"UTF-16BE", kEnglish, "UTF-16BE"},    {"UTF-32", kJapanese, "UTF-32"},
          {"UTF-32LE", kEnglish, "UTF-32LE"},    {"UTF-32BE", kJapanese, "UTF-32BE"},
          {"ISO-8859-1", kLatin, "ISO-8859-1"},  {"WINDOWS-1252", kFrench, "WINDOWS-1252"}};
}

}  // namespace

TEST_CASE("each encoding is recognised, rejected with the command that converts it, and read on request") {
  const TemporaryFolder folder;
  for (const Sample& sample : samples()) {
    INFO(sample.encoding << ": " << sample.text.substr(0, 30));
    const std::string bytes = encoded(sample.text, sample.encoding);
    REQUIRE(detect_encoding(bytes) == sample.recognised);
    const std::string path = folder.write("a text.txt", bytes);
    require_refused([&] { load_corpus({path}); },
                    {path, "UTF-8", sample.recognised, "iconv -f " + sample.recognised + " -t UTF-8 '" + path + "' > '",
                     "`encoding` " + sample.recognised});
    const Corpus corpus = load_corpus({path}, {.encoding = sample.recognised});
    REQUIRE(corpus.text == sample.text);
    REQUIRE(corpus.notes.size() == (sample.text.find("\r\n") == std::string::npos ? 0 : 1));  // about line ends
    // The identity of a corpus is that of its text, whatever the encoding.
    REQUIRE(corpus.hash == load_corpus({folder.write("utf8.txt", sample.text)}).hash);
    const StandardInputFrom input(path);
    REQUIRE(load_corpus({"-"}, {.encoding = sample.recognised}).text == sample.text);
  }
}

TEST_CASE("text with a byte that Windows-1252 does not have is not taken for it") {
  const std::string french = encoded(kFrench, "WINDOWS-1252");
  for (const char byte : {'\x00', '\x81', '\x8d', '\x8f', '\x90', '\x9d'}) {
    INFO(static_cast<int>(byte));
    REQUIRE(detect_encoding(french + byte) != "WINDOWS-1252");
  }
}

TEST_CASE("letters count beside an ASCII letter, and punctuation between ASCII characters or punctuation") {
  const auto of = [](const std::string& bytes) { return detect_encoding(bytes).value_or(""); };
  REQUIRE(of("\xC9tat") == "ISO-8859-1");
  REQUIRE(of("a caf\xE9, so") == "ISO-8859-1");
  REQUIRE(of("so \xE9 is") == "");
  REQUIRE(of("x, \xE9, y") == "");
  REQUIRE(of("he said \x93so\x94") == "WINDOWS-1252");
  REQUIRE(of("an end\x85\x94") == "WINDOWS-1252");
  // Section signs, which do not count, right behind what does: four of six.
  REQUIRE(of("one\x85 \xA7 1, two\x85 \xA7 2 \x96 three\x94") == "WINDOWS-1252");
  REQUIRE(of("one \xA7\x85 1, two \xA7\x85 2") == "");
  REQUIRE(of("one \x85\xA7 1, two \x85\xA7 2") == "");
}

TEST_CASE("an encoding with units of two or four bytes is recognised in a text of any size") {
  std::string text;
  while (text.size() < (1 << 20)) text += kEnglish;
  for (const char* const encoding : {"UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"}) {
    INFO(encoding);
    const std::string bytes = encoded(text, encoding);
    REQUIRE(detect_encoding(bytes) == encoding);
    REQUIRE(detect_encoding(bytes.substr(0, (1 << 20) + 1)) == encoding);  // the last unit is incomplete
  }
}

TEST_CASE("an encoding is recognised by the whole lines in the first megabyte, or by a line that is longer") {
  constexpr std::size_t kMegabyte = 1 << 20;
  std::string text;
  while (text.size() < kMegabyte) text += "これは日本語の文章です。";
  const std::string bytes = encoded(text, "SHIFT_JIS"), invalid(kMegabyte, '\x81');
  REQUIRE(bytes.size() < kMegabyte);
  REQUIRE(detect_encoding(bytes + "\n" + invalid) == "SHIFT_JIS");
  REQUIRE(detect_encoding(bytes + bytes + invalid) == "SHIFT_JIS");
}

TEST_CASE("UTF-8 is not mistaken for anything else, damaged or not") {
  for (const std::string& text :
       {kJapanese, kFrench, kEnglish, std::string("a\0b\0\0c", 6), std::string("\x1B[31mred")}) {
    REQUIRE_FALSE(detect_encoding(text).has_value());
    std::string damaged = text + kJapanese;
    damaged[damaged.size() - 5] = '\xFF';
    REQUIRE_FALSE(detect_encoding(damaged).has_value());
  }
  REQUIRE_FALSE(detect_encoding("").has_value());
  REQUIRE_FALSE(detect_encoding("\x80\x81\x82\x83").has_value());
  REQUIRE_FALSE(detect_encoding("no quotation marks: a\x93\x94\xFF").has_value());
  REQUIRE_FALSE(detect_encoding(encoded("Съешь же ещё этих мягких французских булок", "KOI8-R")).has_value());
  // Nor is a short text of kana, of which some look like UTF-8.
  for (const std::string encoding : {"SHIFT_JIS", "EUC-JP"})
    REQUIRE(detect_encoding(encoded("太郎は川のそばで笑う。\n花子は川のそばで走る。\n太郎は家で笑う。\n", encoding)) ==
            encoding);
  REQUIRE_FALSE(detect_encoding(encoded("ÄÖÜäöüß", "UTF-8") + "\xFF").has_value());
  // An explicit `--encoding utf-8` is trusted.
  const TemporaryFolder folder;
  const std::string mail = folder.write("mail", encoded(kJapanese, "ISO-2022-JP"));
  REQUIRE(load_corpus({mail}, {.encoding = "utf-8"}).text == read_bytes(mail));
}

TEST_CASE("long texts are decoded in pieces without losing a character between them") {
  std::string text;
  while (text.size() < 400'000) text += kJapanese;
  const TemporaryFolder folder;
  for (const char* const encoding : {"SHIFT_JIS", "ISO-2022-JP", "UTF-16", "UTF-16BE", "EUC-JP"}) {
    INFO(encoding);
    const std::string bytes = encoded(text, encoding);
    const Corpus corpus = load_corpus({folder.write("long", bytes)}, {.encoding = encoding});
    REQUIRE((corpus.text == text));
    for (const std::size_t size : {1u, 7u, 65536u, 65537u}) {
      Decoder decoder(encoding, "long", InvalidUtf8::error);
      std::string decoded;
      const std::string_view all = std::string_view(bytes).substr(0, size == 1 ? 3000 : bytes.size());
      for (std::size_t at = 0; at < all.size(); at += size) decoder.push(all.substr(at, size), decoded);
      REQUIRE((size == 1 ? text.starts_with(decoded) && decoded.size() > 2000 : decoded == text));
    }
  }
}

TEST_CASE("the last letter of a text is read, even if the decoder holds it back for a mark that may follow") {
  const TemporaryFolder folder;
  const std::string path = folder.write("viet.txt", encoded("Xin chào Việt Nam, chào bạn a", "CP1258"));
  REQUIRE(load_corpus({path}, {.encoding = "CP1258"}).text.ends_with(" a"));
}

TEST_CASE("zero bytes indicate a binary file in all encodings except those with units of two or four bytes") {
  for (const char* name : {"utf-16le", "UTF-32", "UCS-2", "UNICODE"}) REQUIRE(has_zero_bytes(name));
  for (const char* name : {"CP932", "ISO-8859-16", "SHIFT_JIS", "UTF-8"}) REQUIRE_FALSE(has_zero_bytes(name));
}

TEST_CASE("bytes that are invalid in the encoding: the error names the first, or a note counts those replaced") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10; ++i) text += kJapanese;
  const std::string good = encoded(text, "SHIFT_JIS");
  const std::string bad = folder.write("bad", good + "\xFF\xFF" + good), cut = folder.write("cut", good + "\x82");
  const auto at = "byte " + std::to_string(good.size());
  require_refused([&] { load_corpus({bad}, {.encoding = "SHIFT_JIS"}); }, {bad, "SHIFT_JIS", at});
  require_refused([&] { load_corpus({cut}, {.encoding = "SHIFT_JIS"}); }, {cut, "SHIFT_JIS", at});
  const Corpus corpus = load_corpus({bad}, {.invalid = InvalidUtf8::replace, .encoding = "SHIFT_JIS"});
  REQUIRE((corpus.text == text + "\uFFFD\uFFFD" + text));
  REQUIRE_THAT(corpus.notes.at(0), ContainsSubstring("replaced 2 of ") && ContainsSubstring("not SHIFT_JIS"));
  require_refused(
      [&] {
        load_corpus({folder.write("utf8", text)}, {InvalidUtf8::replace, "SHIFT_JIS"});
      },
      {"at most 1 %"});
  REQUIRE_THROWS_WITH(load_corpus({bad}, {.encoding = "nonsense"}),
                      ContainsSubstring("iconv") && ContainsSubstring("nonsense"));
}

TEST_CASE("an invalid unit of several bytes, or a number beyond Unicode, is one error, and what follows is read") {
  using namespace std::string_literals;
  std::string text;
  for (int i = 0; i < 20; ++i) text += kJapanese;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"UTF-16LE", "\0\xD8"s},         {"UTF-16BE", "\xDC\0"s},     {"utf-16le", "\0\xD8"s},
      {"UCS-2LE", "\0\xDC"s},          {"UTF-32LE", "\0\xD8\0\0"s}, {"UTF-32BE", "\0\x11\0\0"s},
      {"UCS-4LE", "\0\0\x11\0"s},      {"UCS-4LE", "\0\0\0\x7F"s},  {"UCS-4BE", "\x7F\xFF\xFF\xFF"s},
      {"UCS-4BE", "\xFF\xFF\xFF\xFF"s}};
  const TemporaryFolder folder;
  for (const auto& [encoding, bad] : cases) {
    const std::string good = encoded(text, encoding), all = good + bad + good + bad;
    INFO(encoding << ", " << bad.size() << " bytes");
    REQUIRE(unit_bytes(encoding) == bad.size());
    for (const std::size_t size : {1u, 7u, 65536u}) {
      Decoder decoder(encoding, "bad", InvalidUtf8::replace);
      std::string decoded;
      for (std::size_t at = 0; at < all.size(); at += size)
        decoder.push(std::string_view(all).substr(at, size), decoded);
      decoder.finish(decoded);
      REQUIRE((decoded == text + "\uFFFD" + text + "\uFFFD"));
      REQUIRE(decoder.replaced() == 2 * bad.size());
      REQUIRE(decoder.bytes() == all.size());
    }
    require_refused([&, &name = encoding] { load_corpus({folder.write("bad", all)}, {.encoding = name}); },
                    {"is not text in " + encoding, "byte " + std::to_string(good.size()) + " is invalid"});
  }
}

TEST_CASE("an invalid byte at the end that iconv has passed already is one error") {
  const std::string bytes = std::string(500, 'x') + "\x0E";  // shifts to a set of characters that was not named
  std::string text;
  Decoder decoder("ISO-2022-CN-EXT", "bad", InvalidUtf8::replace);
  decoder.push(bytes, text);
  decoder.finish(text);
  REQUIRE(text == std::string(500, 'x') + "\uFFFD");
  REQUIRE(decoder.replaced() == 1);
  REQUIRE(decoder.bytes() == bytes.size());
  require_refused([&] { Decoder("ISO-2022-CN-EXT", "bad", InvalidUtf8::error).push(bytes, text); },
                  {"is not text in ISO-2022-CN-EXT"});
}

TEST_CASE("the error for a compressed file names the commands that unpack it") {
  const TemporaryFolder folder;
  const std::string path = folder.write("corpus.txt.gz", "\x1F\x8B\x08\x08 and so on");
  require_refused([&] { load_corpus({path}); },
                  {path, "gzip", "gunzip --keep " + path, "zcat " + path + " | maki train -"});
  require_refused([&] { load_corpus({path}, {.encoding = "SHIFT_JIS"}); }, {"gzip"});
  const StandardInputFrom input(path);
  require_refused([] { load_corpus({"-"}); }, {"standard input", "gzip"});
}
