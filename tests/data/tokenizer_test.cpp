// Decoding returns the bytes that were encoded, errors name characters that the vocabulary lacks, and a saved tokenizer
// is either read back exactly or rejected.
#include <numeric>
#include <random>
#include <rapidcheck.h>
#include <set>

#include "data/io/hash.h"
#include "data/io/utf8.h"
#include "data/tokenizer/byte_tokenizer.h"
#include "data/tokenizer/char_tokenizer.h"
#include "data/tokenizer/unknown_characters.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/data/random_bytes.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Code points of every encoded length, from one to four bytes.
char32_t random_code_point(std::mt19937_64& random) {
  static constexpr std::uint32_t kLengthLimits[] = {0x80, 0x800, 0x10000, 0x110000};
  const auto c = static_cast<char32_t>(random() % kLengthLimits[random() % 4]);
  return c >= 0xD800 && c <= 0xDFFF ? U'猫' : c;
}

std::string random_text(std::mt19937_64& random, std::size_t max_size) {
  std::string text;
  for (std::size_t n = random() % (max_size + 1); n > 0; --n) append_utf8(text, random_code_point(random));
  return text;
}

bool comes_back(const Tokenizer& tokenizer, const std::string& text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocab_size()) return false;
  }
  return tokenizer.decode(ids) == text;
}

// Tokens that span characters: the id is the length of a run of equal bytes, and a text cannot be cut inside a run.
class RunTokenizer final : public Tokenizer {
 public:
  std::string kind() const override { return "run"; }
  std::int64_t vocab_size() const override { return 1 << 20; }
  std::size_t token_bound(std::string_view text) const override { return text.size(); }
  std::size_t next_cut(std::string_view text, std::size_t at) const override {
    while (at < text.size() && text[at] == text[at - 1]) ++at;
    return at;
  }
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i == 0 || text[i] != text[i - 1]) ids.push_back(0);
      ++ids.back();
    }
    return ids;
  }
  std::string_view bytes(std::int32_t) const override { return "a"; }
  std::string save_encoding() const override { return ""; }
};

}  // namespace

TEST_CASE("a long text is cut only where the tokenizer can cut it") {
  const RunTokenizer tokenizer;
  std::string text;
  for (const int length : {4095, 1, 4097, 10000, 2, 1, 1, 9000})
    text.append(static_cast<std::size_t>(length), text.ends_with('a') ? 'b' : 'a');
  Tokens ids(tokenizer.vocab_size());
  tokenizer.encode(text, ids);
  REQUIRE(ids.view().ids() == std::vector<std::int32_t>{4095, 1, 4097, 10000, 2, 1, 1, 9000});
}

TEST_CASE("bytes: every string of at most two bytes, and random ones, are decoded unchanged") {
  const ByteTokenizer tokenizer;
  REQUIRE(tokenizer.vocab_size() == 256);
  REQUIRE(tokenizer.kind() == "byte");
  int seen = 0;
  bool good = comes_back(tokenizer, "");
  for (int a = 0; a < 256; ++a) {
    const std::string one(1, static_cast<char>(a));
    good = good && comes_back(tokenizer, one) && tokenizer.encode(one).front() == a && tokenizer.bytes(a) == one;
    for (int b = 0; b < 256; ++b, ++seen) good = good && comes_back(tokenizer, one + static_cast<char>(b));
  }
  REQUIRE(good);
  REQUIRE(seen == 65536);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1'000'000; ++i) good = good && comes_back(tokenizer, random_bytes(random, 256));
  REQUIRE(good);
  REQUIRE(rc::check("any bytes", [&](const std::string& text) { RC_ASSERT(comes_back(tokenizer, text)); }));
}

TEST_CASE("characters: ids ascend with code points, one per character, and any text of them is decoded unchanged") {
  const std::string text = "b猫a\n😀éba";
  const CharTokenizer tokenizer(text);
  REQUIRE(tokenizer.kind() == "char");
  REQUIRE(tokenizer.vocab_size() == 6);
  REQUIRE(tokenizer.encode(text) == std::vector<std::int32_t>{2, 4, 1, 0, 5, 3, 2, 1});
  const std::vector<std::string> vocabulary = {"\n", "a", "b", "é", "猫", "😀"};
  for (std::size_t i = 0; i < vocabulary.size(); ++i)
    REQUIRE(tokenizer.bytes(static_cast<std::int32_t>(i)) == vocabulary[i]);
  REQUIRE(tokenizer.encode("").empty());

  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const std::string any = random_text(random, 200);
    const CharTokenizer own(any);
    REQUIRE(comes_back(own, any));
    REQUIRE(static_cast<std::int64_t>(own.encode(any).size()) == count_code_points(any));
  }
  REQUIRE(rc::check("texts of one vocabulary", [&](const std::vector<std::uint8_t>& picks) {
    std::string any;
    for (const std::uint8_t pick : picks) any += vocabulary[pick % vocabulary.size()];
    RC_ASSERT(comes_back(tokenizer, any));
  }));
}

TEST_CASE("a vocabulary of every Unicode character") {
  std::string all;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xD800 || c > 0xDFFF) append_utf8(all, c);
  }
  const CharTokenizer tokenizer(all);
  REQUIRE(tokenizer.vocab_size() == 0x110000 - 2048);
  std::vector<std::int32_t> expected(0x110000 - 2048);
  std::iota(expected.begin(), expected.end(), 0);
  REQUIRE((tokenizer.encode(all) == expected));
  REQUIRE((tokenizer.decode(expected) == all));
  const std::string saved = tokenizer.save();
  start_peak();
  const auto loaded = load_tokenizer(saved);
  const std::int64_t peak = peak_bytes();
  REQUIRE(peak > static_cast<std::int64_t>(saved.size()));
  REQUIRE(peak < 8 * static_cast<std::int64_t>(saved.size()) + (16 << 20));
  REQUIRE((loaded->decode(expected) == all));
}

TEST_CASE("characters that the vocabulary lacks are named, invisible ones by number, and many are counted") {
  const CharTokenizer tokenizer("abc ");
  require_refused([&] { tokenizer.encode("abΩ"); }, {"4 tokens", "Ω (U+03A9)"});
  require_refused([&] { tokenizer.encode("a\nb\u200D"); }, {"U+000A", "U+200D"});
  require_refused([&] { tokenizer.encode("😀"); }, {"😀 (U+1F600)"});
  require_refused([&] { tokenizer.encode("0123456789AB"); }, {"0 (U+0030)", ", B (U+0042)"});
  require_refused([&] { tokenizer.encode("0123456789ABCDE"); }, {"B (U+0042) and 3 more"});
  require_refused([&] { tokenizer.encode("猫x猫 xx猫x猫猫"); },
                  {"these characters: 猫 (U+732B) 5 times, x (U+0078) 4 times; leave them out"});
  require_refused([&] { tokenizer.encode("ab\xFF"); }, {"UTF-8", "byte 2"});
  require_refused([&] { tokenizer.bytes(4); }, {"[0, 4)", "got 4"});
  require_refused([&] { tokenizer.bytes(-1); }, {"-1"});
  require_refused([&] { ByteTokenizer().bytes(256); }, {"[0, 256)", "256"});
  const std::vector<std::int32_t> ids = {0, 1, 99};
  require_refused([&] { tokenizer.decode(ids); }, {"99"});
}

TEST_CASE("characters that the vocabulary lacks are left out or replaced on request, and counted") {
  using Views = std::vector<std::string_view>;
  const CharTokenizer tokenizer("abc猫 ");
  const auto known = [&](const Tokenizer& t, Unknown policy) { return known_text(t, {"a犬b犬", "猫", "Ω"}, policy); };
  REQUIRE(known(tokenizer, Unknown::skip).pieces == Views{"ab", "猫", ""});
  REQUIRE(known(tokenizer, Unknown::replace).pieces == Views{"a b ", "猫", " "});
  REQUIRE(known(tokenizer, Unknown::skip).unknown == 3);
  REQUIRE(known(tokenizer, Unknown::skip).describe() == "3 characters that the vocabulary lacks were left out");
  REQUIRE(known(tokenizer, Unknown::replace).describe() ==
          "3 characters that the vocabulary lacks were replaced with a space");
  require_refused([&] { known(tokenizer, Unknown::error); }, {"犬 (U+72AC) 2 times, Ω (U+03A9);", "`unknown` skip"});
  REQUIRE(known(CharTokenizer("ab猫? \uFFFD"), Unknown::replace).pieces.at(0) == "a\uFFFDb\uFFFD");
  REQUIRE(known(CharTokenizer("ab猫?"), Unknown::replace).pieces.at(0) == "a?b?");
  require_refused([&] { known(CharTokenizer("ab猫"), Unknown::replace); }, {"`unknown` skip"});
  REQUIRE(known(CharTokenizer("ab猫犬Ω"), Unknown::replace).describe().empty());
  REQUIRE(known(ByteTokenizer(), Unknown::error).unknown == 0);
  REQUIRE(parse_unknown_policy("skip") == Unknown::skip);
  REQUIRE_THROWS_WITH(parse_unknown_policy("skipp"), ContainsSubstring("error, skip, replace"));
}

TEST_CASE("the help says of every kind what a token stands for") {
  REQUIRE(tokenizer_names() == std::vector<std::string>{"char", "byte", "word", "bpe"});
  REQUIRE(tokenizer_help() ==
          "tokenizer: one token per character, per byte, per word between spaces, per frequent sequence of bytes");
}

TEST_CASE("a saved tokenizer is loaded unchanged, and its hash distinguishes tokenizers") {
  std::set<std::string> hashes;
  for (const std::string& text : std::vector<std::string>{"a", "ab", "ba\n", "猫", std::string("\0", 1), "\uFEFF😀"}) {
    const CharTokenizer tokenizer(text);
    const auto loaded = load_tokenizer(tokenizer.save());
    REQUIRE(loaded->kind() == "char");
    REQUIRE(loaded->save() == tokenizer.save());
    REQUIRE(loaded->hash() == tokenizer.hash());
    REQUIRE(loaded->encode(text) == tokenizer.encode(text));
    hashes.insert(tokenizer.hash());
  }
  const auto bytes = load_tokenizer(ByteTokenizer().save());
  REQUIRE(bytes->kind() == "byte");
  hashes.insert(bytes->hash());
  REQUIRE(hashes.size() == 7);
  REQUIRE(CharTokenizer("ab").hash() == CharTokenizer("bbaa").hash());  // canonical
  // The format of version 1, which every checkpoint contains.
  REQUIRE(CharTokenizer("b猫a").save() == "maki char tokenizer 1\nab猫");
  REQUIRE(ByteTokenizer().save() == "maki byte tokenizer 1\n");
}

TEST_CASE("a saved tokenizer that is damaged or forged is rejected") {
  const std::string head = "maki char tokenizer 1\n";
  for (const std::string& bad : std::vector<std::string>{
           "", "maki", head, head + "ba", head + "aa", head + "a\xFF", head + "a\xE7\x8C", head + "\xED\xA0\x80",
           "maki char tokenizer 2\na", "maki byte tokenizer 2\n", "maki byte tokenizer 1\nx", "maki byte tokenizer 1",
           "maki bpe tokenizer 2\n", std::string(1000, '\0')}) {
    require_refused([&] { load_tokenizer(bad); }, {"tokenizer"});
  }
  // Every truncation and every altered byte is rejected, or gives another vocabulary in canonical form.
  const std::string good = CharTokenizer("\n aé猫😀").save();
  int refused = 0, read = 0;
  const auto attempt = [&](const std::string& saved) {
    try {
      if (load_tokenizer(saved)->save() != saved) FAIL("not canonical");
      ++read;
    } catch (const CorpusError&) {
      ++refused;
    }
  };
  for (std::size_t n = 0; n < good.size(); ++n) attempt(good.substr(0, n));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string altered = good;
      altered[at] = static_cast<char>(byte);
      if (altered != good) attempt(altered);
    }
  }
  REQUIRE(refused > 5000);
  REQUIRE(read > 10);
}

TEST_CASE("tokenizers by kind") {
  REQUIRE(make_tokenizer("byte", "ab")->vocab_size() == 256);
  REQUIRE(make_tokenizer("char", "abab")->vocab_size() == 2);
  require_refused([] { make_tokenizer("unigram", "ab"); }, {"char", "byte", "word", "bpe", "unigram"});
}

TEST_CASE("the hash is XXH3 in its canonical form") {
  REQUIRE(hash128_hex("") == "99aa06d3014798d86001c324468d497f");  // the published value
  REQUIRE(hash64("") == 0x2d06800538d394c2u);
  REQUIRE(hash128_hex("a") != hash128_hex("b"));
}
