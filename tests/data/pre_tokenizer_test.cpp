// The pre-tokenizer: pieces of known texts, white space as Unicode defines it, bytes that are not UTF-8, and places
// where a text can be cut.
#include "data/tokenizer/pre_tokenizer.h"

#include <rapidcheck.h>
#include <utility>

#include "tests/catch.h"
#include "tests/data/bpe_fixture.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  pre_tokenizer.split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

std::string joined(const Pieces& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

}  // namespace

TEST_CASE("the rule gpt2 cuts texts as GPT-2 does") {
  const std::vector<Pieces> cases = {
      {"Hello", ",", " world", "!"},
      {"it", "'s", " they", "'re", " I", "'ll", " '", "S"},
      {"a", "  ", " b"},
      {"a", " \n", "\n", "b"},
      {"x", "12", "y"},
      {"end", "  \n"},
      {"吾輩は猫である", "。", "名前はまだ無い", "。\u200b"},
      {"終わり", "。", "\u3000", "次"},
      {"\n\u3000", "\u3000", "次"},
      {"a", ".\u180e.", "b"},  // which is white space in PCRE2, and not in Unicode
      {"e", "\u0301"},
      {"½²", " Ⅳ"},
  };
  const PreTokenizer gpt2("gpt2");
  for (const Pieces& expected : cases) REQUIRE(pieces_of(gpt2, joined(expected)) == expected);
  REQUIRE(pieces_of(gpt2, "").empty());
}

TEST_CASE("a run of bytes that are not UTF-8 is a piece of its own") {
  const PreTokenizer gpt2("gpt2");
  REQUIRE(pieces_of(gpt2,
                    "ab\xFF\xFE"
                    "cd") == Pieces{"ab", "\xFF\xFE", "cd"});
  REQUIRE(pieces_of(gpt2, "a\xE3\x81") == Pieces{"a", "\xE3\x81"});
  REQUIRE(pieces_of(gpt2, " \x80 ") == Pieces{" ", "\x80", " "});
}

TEST_CASE("an unknown rule is refused with the names of all rules") {
  require_refused([] { PreTokenizer("gpt3"); }, {"gpt2", "cl100k", "qwen2", "o200k", "gpt3"});
}

TEST_CASE("the expression of every rule names it") {
  for (const std::string& rule : PreTokenizer::rules())
    REQUIRE(PreTokenizer::rule_of_expression(PreTokenizer::expression_of_rule(rule)) == rule);
  REQUIRE(PreTokenizer::rule_of_expression("\\w+").empty());
}

TEST_CASE("a text can be cut where next_cut says so") {
  const BpeFixture fixture;
  Pieces parts = {"\x80", "\xC2", "\xE3\x80", " ", " ", "\n", "\u3000", "\r\n", "猫", "a", "1", "。", "'"};
  parts.insert(parts.end(), fixture.strings().begin(), fixture.strings().begin() + 200);
  for (const std::string& rule : PreTokenizer::rules()) {
    const PreTokenizer pre_tokenizer(rule);
    std::int64_t cuts = 0;
    REQUIRE(rc::check([&](const std::vector<std::uint8_t>& picks) {
      std::string text;
      for (const std::uint8_t pick : picks) text += parts[pick % parts.size()];
      const Pieces whole = pieces_of(pre_tokenizer, text);
      RC_ASSERT(joined(whole) == text);
      std::size_t last = std::string::npos;
      for (std::size_t at = 0; at <= text.size(); ++at) {
        const std::size_t cut = pre_tokenizer.next_cut(text, at);
        RC_ASSERT(cut >= at && cut <= text.size());
        cuts += cut > 0 && cut < text.size();
        if (std::exchange(last, cut) == cut) continue;
        Pieces both = pieces_of(pre_tokenizer, std::string_view(text).substr(0, cut));
        const Pieces rest = pieces_of(pre_tokenizer, std::string_view(text).substr(cut));
        both.insert(both.end(), rest.begin(), rest.end());
        RC_ASSERT(both == whole);
      }
    }));
    REQUIRE(cuts > 1000);
  }
}

TEST_CASE("a text is cut before the next space, also before a wide one") {
  const PreTokenizer gpt2("gpt2"), cl100k("cl100k");
  REQUIRE(gpt2.next_cut("猫です。 \n 犬", 1) == 12);
  REQUIRE(gpt2.next_cut("猫です。\u3000犬", 1) == 12);
  REQUIRE(gpt2.next_cut("a  b c", 2) == 4);
  REQUIRE(cl100k.next_cut("a. b c", 1) == 4);  // a line end after the point would belong to it
  REQUIRE(gpt2.next_cut("abc", 1) == 3);
}
