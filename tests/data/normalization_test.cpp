// Unicode normalization, and tokenizers that normalize.
#include "data/tokenizer/normalization.h"

#include <rapidcheck.h>

#include "data/io/utf8.h"
#include "data/tokenizer/normalized_tokenizer.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/tokenizer_files.h"
#include "data/tokenizer/unknown_characters.h"
#include "tests/catch.h"
#include "tests/data/bpe_fixture.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Ids = std::vector<std::int32_t>;

std::string text_of(const std::vector<std::string>& parts, const std::vector<std::uint8_t>& picks) {
  std::string text;
  for (const std::uint8_t pick : picks) text += parts[pick % parts.size()];
  return text;
}

// Cuts where a rule of byte-level BPE does, and counts the bytes that are looked at for this.
class WatchedCuts final : public Tokenizer {
 public:
  WatchedCuts(const std::string& rule, std::size_t& looked_at) : rule_(rule), looked_at_(looked_at) {}

  std::string kind() const override { return "bpe"; }
  std::int64_t vocab_size() const override { return 256; }
  std::size_t token_bound(std::string_view text) const override { return text.size(); }
  std::size_t next_cut(std::string_view text, std::size_t at) const override {
    const std::size_t cut = rule_.next_cut(text, at);
    looked_at_ += cut - at + 1;
    return cut;
  }
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::string_view) const override { return {}; }
  std::string_view bytes(std::int32_t) const override { return "a"; }
  std::string save_encoding() const override { return ""; }

 private:
  PreTokenizer rule_;
  std::size_t& looked_at_;
};

// Whether a text may be cut here: before a space or newline that a rule cuts before, after a character that is its own
// normal form and no white space.
bool is_cut(const PreTokenizer& rule, Normalization form, std::string_view text, std::size_t at) {
  if ((text[at] != ' ' && text[at] != '\n') || rule.next_cut(text, at) != at) return false;
  std::size_t begin = at - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  const std::string_view last = text.substr(begin, at - begin);
  std::string_view rest = last;
  return normalize(last, form) == last && !is_white_space(next_code_point(rest));
}

}  // namespace

TEST_CASE("NFC composes, and NFKC also replaces compatibility characters") {
  struct Case {
    std::string text, nfc, nfkc;
  };
  const std::vector<Case> cases = {
      {"plain", "plain", "plain"},
      {"e\u0301", "é", "é"},
      {"か\u3099ハ\u309A", "がパ", "がパ"},
      {"ｶﾞＡＢＣ１", "ｶﾞＡＢＣ１", "ガABC1"},
      {"ﬁ①²", "ﬁ①²", "fi12"},
      {"\u1112\u1161\u11ab", "한", "한"},
      {"a\u0323\u0307", "ạ\u0307", "ạ\u0307"},
      {"a\u0307\u0323", "ạ\u0307", "ạ\u0307"},
      {std::string("\0e\u0301", 4), std::string("\0é", 3), std::string("\0é", 3)},
      {"e\xFF\u0301\xE3\x81", "e\xFF\u0301\xE3\x81", "e\xFF\u0301\xE3\x81"},
  };
  for (const Case& each : cases) {
    REQUIRE(normalize(each.text, Normalization::none) == each.text);
    REQUIRE(normalize(each.text, Normalization::nfc) == each.nfc);
    REQUIRE(normalize(each.text, Normalization::nfkc) == each.nfkc);
  }
}

TEST_CASE("a long text is normalized in parts as in one piece") {
  std::string text, expected;
  while (text.size() < 300'000) {
    text += "xe\u0301 か\u3099\u0316\u0301e";
    text += "\u0301\u0301\u0323";
    expected += normalize("xe\u0301 か\u3099\u0316\u0301e\u0301\u0301\u0323", Normalization::nfc);
  }
  REQUIRE(normalize(text, Normalization::nfc) == expected);
}

TEST_CASE("a text is cut before no character that its normal form may combine with the one before") {
  struct Case {
    std::string text;
    std::size_t at, nfc, nfkc;
  };
  const std::vector<Case> cases = {
      {"xe\u0301\u0323y", 2, 6, 6}, {"ﾌﾟﾛ", 3, 3, 6},  {"か\u3099", 3, 6, 6},     {"\u1112\u1161\u11ab.", 3, 9, 9},
      {"하\u11ab", 3, 6, 6},        {"ㅎㅏ", 3, 3, 6}, {"\u09c7\u09be", 3, 6, 6}, {"x\u00a8", 1, 1, 1},
      {"\u0301x", 0, 0, 0},         {"xy", 2, 2, 2},
  };
  for (const Case& each : cases) {
    INFO(each.text);
    REQUIRE(next_normal_cut(each.text, each.at, Normalization::none) == each.at);
    REQUIRE(next_normal_cut(each.text, each.at, Normalization::nfc) == each.nfc);
    REQUIRE(next_normal_cut(each.text, each.at, Normalization::nfkc) == each.nfkc);
  }
  const std::vector<std::string> parts = {"e",      "\u0301", "\u0323", "か",     "\u3099", "ﾊ",      "ﾟ",
                                          "\u1112", "\u1161", "\u11ab", "하",     "ㅎ",     "ㅏ",     "ﾡ",
                                          "ￂ",      "\u0cc6", "\u0cc2", "\u0cd5", "\u0e33", "\u00a8", " "};
  REQUIRE(rc::check([&](const std::vector<std::uint8_t>& picks) {
    const std::string text = text_of(parts, picks);
    for (const Normalization form : {Normalization::nfc, Normalization::nfkc}) {
      for (std::size_t at = 0; at <= text.size(); ++at) {
        if (at < text.size() && is_continuation(text[at])) continue;
        const std::size_t cut = next_normal_cut(text, at, form);
        RC_ASSERT(cut >= at && cut <= text.size());
        RC_ASSERT(normalize(text.substr(0, cut), form) + normalize(text.substr(cut), form) == normalize(text, form));
      }
    }
  }));
}

TEST_CASE("names of normal forms") {
  for (const std::string& name : normalization_names()) REQUIRE(to_string(parse_normalization(name)) == name);
  require_refused([] { parse_normalization("NFC"); }, {"normalize", "nfc", "nfkc", "NFC"});
}

TEST_CASE("a tokenizer that normalizes restores the normalized text") {
  const BpeFixture fixture;
  const std::string text = fixture.training_text();
  for (const char* const kind : {"char", "byte", "word", "bpe"}) {
    const auto tokenizer = make_tokenizer(kind, text, {.vocab_size = 600, .normalization = Normalization::nfkc});
    REQUIRE(tokenizer->kind() == kind);
    const std::string expected = normalize(text, Normalization::nfkc);
    REQUIRE(tokenizer->decode(tokenizer->encode(text)) == expected);
    Tokens ids(tokenizer->vocab_size());
    tokenizer->encode(text, ids);
    REQUIRE(ids.ids() == tokenizer->encode(text));
    REQUIRE(tokenizer->encode(text) == tokenizer->encode(expected));
    const auto loaded = load_tokenizer(tokenizer->save());
    REQUIRE(loaded->save() == tokenizer->save());
    REQUIRE(loaded->encode(text) == tokenizer->encode(text));
    REQUIRE(loaded->decode_line(loaded->encode_line("the ﬁne")) == "the fine");
    REQUIRE(loaded->unknown(text).empty());
    REQUIRE(tokenizer->hash() != make_tokenizer(kind, expected, {.vocab_size = 600})->hash());
  }
}

TEST_CASE("a text can be cut where a tokenizer that normalizes says so") {
  const std::vector<std::string> parts = {"e",    "\u0301", " ",       "\n", "か",     "\u3099",   "a1",
                                          "¨",    "\u00a0", " \u0301", "。", "ﬁ",      "Ⅳ",        "'s",
                                          "\xFF", "the",    " the",    "½",  "\u3000", "e\n\u0301"};
  for (const char* const kind : {"byte", "bpe"}) {
    const auto tokenizer = make_tokenizer(kind, "the e\u0301 the か\u3099  \n  \n  \n",
                                          {.vocab_size = 300, .normalization = Normalization::nfkc});
    std::int64_t cuts = 0;
    REQUIRE(rc::check([&](const std::vector<std::uint8_t>& picks) {
      const std::string text = text_of(parts, picks);
      const Ids whole = tokenizer->encode(text);
      for (std::size_t at = 0; at <= text.size(); ++at) {
        const std::size_t cut = tokenizer->next_cut(text, at);
        RC_ASSERT(cut >= at && cut <= text.size());
        Ids both = tokenizer->encode(text.substr(0, cut));
        const Ids rest = tokenizer->encode(text.substr(cut));
        both.insert(both.end(), rest.begin(), rest.end());
        RC_ASSERT(both == whole);
        cuts += cut > 0 && cut < text.size();
      }
    }));
    REQUIRE(cuts > 100);
    const std::string line = "吾輩は猫である\n";
    REQUIRE(tokenizer->next_cut(line + line, 1) == line.size() - 1);
  }
}

TEST_CASE("the first place where a tokenizer that normalizes can cut is found by looking at each byte once") {
  const std::vector<std::string> parts = {"a",  "e",      "\u0301", " ", "\n",     "д", "д ",
                                          "か", "\u3099", "ﬁ",      "Ⅳ", "\u3000", "."};
  const auto form = GENERATE(Normalization::nfc, Normalization::nfkc);
  for (const std::string& name : PreTokenizer::rules()) {
    INFO(name << ", " << to_string(form));
    const PreTokenizer rule(name);
    std::size_t looked_at = 0;
    const NormalizedTokenizer tokenizer(std::make_unique<WatchedCuts>(name, looked_at), form);
    REQUIRE(rc::check([&](const std::vector<std::uint8_t>& picks) {
      const std::string text = text_of(parts, picks);
      std::size_t expected = text.size();
      for (std::size_t at = text.size(); at-- > 1;) {
        if (is_cut(rule, form, text, at)) expected = at;
        RC_ASSERT(tokenizer.next_cut(text, at) == expected);
      }
      RC_ASSERT(tokenizer.next_cut(text, 0) == expected);
    }));
    // No rule but gpt2 is sure to cut after a letter of Cyrillic; after ﬁ, gpt2 is, but its normal form differs.
    for (const std::string piece : {"д ", "ﬁ ", "д\u3000", "猫\u3000"}) {
      std::string text;
      for (int i = 0; i < 3000; ++i) text += piece;
      looked_at = 0;
      tokenizer.next_cut(text, 1);
      REQUIRE(looked_at <= 2 * text.size());
    }
  }
}

TEST_CASE("unknown characters are named as they are in the text") {
  const auto tokenizer = make_tokenizer("char", "abé", {.normalization = Normalization::nfkc});
  REQUIRE(tokenizer->unknown("ａｂe\u0301").empty());
  REQUIRE(tokenizer->unknown("aＣＣ") == std::map<char32_t, std::int64_t>{{U'Ｃ', 2}});
  REQUIRE(tokenizer->unknown("b\u0301").contains(0x301));
  // Beside a character of the text, one that a combination makes; an accent of a known letter is none of them.
  REQUIRE(tokenizer->unknown("e\u0301a\u0300Ｃ") == std::map<char32_t, std::int64_t>{{U'à', 1}, {U'Ｃ', 1}});
  require_refused([&] { tokenizer->encode("aＣ"); }, {"C (U+0043)"});
}

TEST_CASE("unknown characters that exist only in the normalized text are left out or replaced") {
  const auto known = [](const std::string& vocabulary, const std::vector<std::string_view>& pieces, Unknown policy) {
    const auto tokenizer = make_tokenizer("char", vocabulary, {.normalization = Normalization::nfc});
    const KnownText text = known_text(*tokenizer, pieces, policy);
    std::string all;
    for (const std::string_view piece : text.pieces) all += tokenizer->decode(tokenizer->encode(piece)) + "|";
    return all + std::to_string(text.unknown);
  };
  // e and the accent are known, but not é, which they combine to.
  const std::string parts = "abex\u0301 ";
  REQUIRE(known(parts, {"ae\u0301b", "x\u0301"}, Unknown::skip) == "ab|x\u0301|1");
  REQUIRE(known(parts, {"ae\u0301b", "x\u0301"}, Unknown::replace) == "a b|x\u0301|1");
  REQUIRE(known(parts, {"ae猫\u0301b"}, Unknown::skip) == "ab|2");  // without 猫, they combine
  REQUIRE(known(parts, {"ae猫\u0301b"}, Unknown::replace) == "ae \u0301b|1");
  // é is known, but not its parts, and stays.
  REQUIRE(known("abé", {"e\u0301猫", "ae\u0301"}, Unknown::skip) == "é|aé|1");
  require_refused([&] { known(parts, {"ae\u0301b"}, Unknown::error); }, {"é (U+00E9)", "`unknown` skip"});
}

TEST_CASE("damaged saved forms of tokenizers that normalize are refused") {
  const std::string header(NormalizedTokenizer::kHeader), inner = make_tokenizer("byte", "")->save();
  REQUIRE(load_tokenizer(header + "nfc\n" + inner)->kind() == "byte");
  const std::string used = "maki used tokenizer 1\n{\"begin\":0}\n";
  REQUIRE(load_tokenizer(used + header + "nfc\n" + inner)->use().begin == 0);
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += used + header + "nfc\n";
  for (const std::string& bad :
       {header, header + "nfc", header + "none\n" + inner, header + "NFC\n" + inner, header + "nfc\n",
        header + "nfc\n" + header + "nfc\n" + inner, header + "nfc\n" + used + inner, nested + inner})
    require_refused([&] { load_tokenizer(bad); }, {});
}
