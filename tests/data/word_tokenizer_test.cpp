// The word tokenizer: nothing is lost, words that are rare or unknown are spelled, a long text is encoded block by
// block as it is in one piece, and a saved form is either read back exactly or rejected.
#include "data/tokenizer/word_tokenizer.h"

#include <map>
#include <rapidcheck.h>
#include <set>
#include <type_traits>

#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Pieces = std::vector<std::string>;

// Texts with every kind of space between words that repeat: ASCII, Japanese, four bytes, and the wide space U+3000,
// which is a character like any other.
const Pieces kParts = {" ",  " ",  " ",    "\n",     "\t", "\r\n", "\v", "the", "the", "cat",    "c",
                       "猫", "猫", "です", "\u3000", "é",  "😀",    "😀x", ".",   "a b", "the cat"};

std::string text_of(const std::vector<std::uint8_t>& picks) {
  std::string text;
  for (const std::uint8_t pick : picks) text += kParts[pick % kParts.size()];
  return text;
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The units of a text, found from its end: each maximal run of other characters takes the space before it, if there is
// one, and every other space stands alone.
Pieces units_of(const std::string& text) {
  Pieces units;
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    if (!is_ascii_space(text[begin])) {
      while (begin > 0 && !is_ascii_space(text[begin - 1])) --begin;
      if (begin > 0 && text[begin - 1] == ' ') --begin;
    }
    units.insert(units.begin(), text.substr(begin, end - begin));
    end = begin;
  }
  return units;
}

std::set<std::string> characters_of(std::string_view text) {
  std::set<std::string> characters;
  while (!text.empty()) {
    const std::string_view before = text;
    next_code_point(text);
    characters.insert(std::string(before.substr(0, before.size() - text.size())));
  }
  return characters;
}

Pieces bytes_of(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  Pieces pieces;
  for (const std::int32_t id : ids) pieces.emplace_back(tokenizer.bytes(id));
  return pieces;
}
Pieces spell(const Tokenizer& tokenizer, const std::string& text) {
  return bytes_of(tokenizer, tokenizer.encode(text));
}

// What the header promises about the vocabulary of a text.
Pieces vocabulary_of(const std::string& text) {
  const std::set<std::string> characters = characters_of(text);  // of valid UTF-8, byte order is that of code points
  Pieces vocabulary(characters.begin(), characters.end());
  std::map<std::string, int> counts;
  for (const std::string& unit : units_of(text)) ++counts[unit];
  for (const auto& [unit, count] : counts) {
    if (count >= 2 && !characters.contains(unit)) vocabulary.push_back(unit);
  }
  return vocabulary;
}

}  // namespace

TEST_CASE("words: the vocabulary is the characters in ascending order, then the words that occur twice or more") {
  const WordTokenizer tokenizer("the cat\nsees the cat. a\n");
  Pieces vocabulary;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) vocabulary.emplace_back(tokenizer.bytes(id));
  // " cat" and " cat." differ, and so do "the" and " the": each occurs once.
  REQUIRE(vocabulary == Pieces{"\n", " ", ".", "a", "c", "e", "h", "s", "t"});
  const WordTokenizer lines(" the cat\n sees the cat\n a cat a\n");
  REQUIRE(lines.kind() == "word");
  REQUIRE(spell(lines, " the cat\n a cat") == Pieces{" the", " cat", "\n", " a", " cat"});
  REQUIRE(lines.vocab_size() == 8 + 3);
  REQUIRE(lines.bytes(8) == " a");
  REQUIRE(lines.bytes(9) == " cat");
  REQUIRE(lines.bytes(10) == " the");
  require_refused([&] { lines.bytes(11); }, {"[0, 11)", "got 11"});
}

TEST_CASE("words: rare and unknown words are spelled, and unknown characters are named") {
  const WordTokenizer tokenizer(" the cat the cat sees");
  REQUIRE(spell(tokenizer, " the sees the") == Pieces{" the", " ", "s", "e", "e", "s", " the"});
  REQUIRE(spell(tokenizer, "the cat") == Pieces{"t", "h", "e", " cat"});  // without the space: another word
  REQUIRE(spell(tokenizer, "  cat") == Pieces{" ", " cat"});              // only the last space belongs to the word
  REQUIRE(spell(tokenizer, " chat cat ") == Pieces{" ", "c", "h", "a", "t", " cat", " "});
  REQUIRE(tokenizer.unknown(" the cats") == std::map<char32_t, std::int64_t>{});
  REQUIRE(tokenizer.unknown(" dog, dog") ==
          std::map<char32_t, std::int64_t>{{U'd', 2}, {U'o', 2}, {U'g', 2}, {U',', 1}});
  require_refused([&] { tokenizer.encode(" the 猫 cat 犬猫"); },
                  {"the vocabulary of 9 tokens", "猫 (U+732B) 2 times", "犬 (U+72AC)"});
  require_refused([&] { tokenizer.encode(" the\xFF"); }, {"UTF-8", "byte 4"});
}

TEST_CASE("words: any text is decoded unchanged, in the tokens that its words have") {
  REQUIRE(rc::check("a text with its own vocabulary", [](const std::vector<std::uint8_t>& picks) {
    const std::string text = text_of(picks);
    const WordTokenizer tokenizer(text);
    const Pieces vocabulary = vocabulary_of(text);
    RC_ASSERT(tokenizer.vocab_size() == std::ssize(vocabulary));
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
      RC_ASSERT(tokenizer.bytes(static_cast<std::int32_t>(id)) == vocabulary[id]);
    RC_ASSERT(tokenizer.decode(tokenizer.encode(text)) == text);
  }));
  std::string all;
  for (const std::string& part : kParts) all += part;
  REQUIRE(rc::check("a text with the vocabulary of another",
                    [&](const std::vector<std::uint8_t>& known, const std::vector<std::uint8_t>& picks) {
                      const WordTokenizer tokenizer(text_of(known) + all);
                      const Pieces vocabulary = vocabulary_of(text_of(known) + all);
                      const std::set<std::string> words(vocabulary.begin(), vocabulary.end());
                      const std::string text = text_of(picks);
                      Pieces expected;
                      for (const std::string& unit : units_of(text)) {
                        if (words.contains(unit)) {
                          expected.push_back(unit);
                          continue;
                        }
                        for (std::string_view left = unit; !left.empty();) {
                          const std::string_view before = left;
                          next_code_point(left);
                          expected.emplace_back(before.substr(0, before.size() - left.size()));
                        }
                      }
                      RC_ASSERT(spell(tokenizer, text) == expected);
                      RC_ASSERT(tokenizer.encode(text).size() <= tokenizer.token_bound(text));
                    }));
  REQUIRE(rc::check("arbitrary characters", [](const std::vector<std::uint32_t>& numbers) {
    std::string text;
    for (const std::uint32_t number : numbers) {
      const auto c = static_cast<char32_t>(number % 0x110000);
      append_utf8(text, c >= 0xD800 && c <= 0xDFFF ? U' ' : c);
    }
    const WordTokenizer tokenizer(text + text);
    RC_ASSERT(tokenizer.decode(tokenizer.encode(text)) == text);
  }));
}

TEST_CASE("words: a text may be cut only where its tokens are the same") {
  REQUIRE(rc::check("every cut", [](const std::vector<std::uint8_t>& picks) {
    const std::string text = text_of(picks);
    const WordTokenizer tokenizer(text + text);
    const std::vector<std::int32_t> whole = tokenizer.encode(text);
    for (std::size_t at = 0; at <= text.size(); ++at) {
      const std::size_t cut = tokenizer.next_cut(text, at);
      RC_ASSERT(cut >= at);
      RC_ASSERT(cut <= text.size());
      RC_ASSERT(cut == text.size() || is_ascii_space(text[cut]));
      std::vector<std::int32_t> parts = tokenizer.encode(text.substr(0, cut));
      const std::vector<std::int32_t> rest = tokenizer.encode(text.substr(cut));
      parts.insert(parts.end(), rest.begin(), rest.end());
      RC_ASSERT(parts == whole);
    }
  }));
}

TEST_CASE("words: a long text has the same tokens in blocks as in one piece") {
  // Blocks of 4,096 bytes end everywhere: in words, in characters, in runs of spaces, and in a word of 20,000 bytes.
  std::string text;
  for (int i = 0; text.size() < 100'000; ++i)
    text += (i % 7 == 0 ? " 吾輩は" : i % 5 == 0 ? " the" : " 猫") + std::string(static_cast<std::size_t>(i % 4), ' ');
  for (int i = 0; i < 20'000; ++i) text += i % 3 == 0 ? "x" : "é";
  text += std::string(9'000, ' ') + "the end the end";
  for (const std::size_t skip : {0U, 1U, 2U, 3U}) {
    const std::string shifted = std::string(skip, 'x') + text;
    const WordTokenizer tokenizer(shifted);
    Tokens blocks(tokenizer.vocab_size());
    tokenizer.encode(shifted, blocks);
    REQUIRE(blocks.view().ids() == tokenizer.encode(shifted));
    REQUIRE(tokenizer.decode(blocks) == shifted);
    REQUIRE(blocks.size() < shifted.size() / 2);
  }
}

TEST_CASE("words: the first word of a line is the same token as elsewhere in it") {
  const WordTokenizer tokenizer(" the cat the cat\n");
  const std::vector<std::int32_t> ids = tokenizer.encode_line("the cat the");
  REQUIRE(bytes_of(tokenizer, ids) == Pieces{" the", " cat", " the"});
  REQUIRE(tokenizer.decode_line(ids) == "the cat the");
  for (const std::string line : {"", " ", "  ", " the", "the ", "\tthe", "tea\tthe  cat"}) {
    const WordTokenizer own(" " + line + " the the\t");
    REQUIRE(own.decode_line(own.encode_line(line)) == line);
  }
  REQUIRE(tokenizer.decode_line(std::vector<std::int32_t>{}).empty());
  // A model may begin with a token that has no space.
  REQUIRE(tokenizer.decode_line(tokenizer.encode("cat the")) == "cat the");
}

TEST_CASE("words: a saved tokenizer is loaded unchanged") {
  for (const std::string text : {" a", " the the", "猫 猫\n 猫", "the the\n the\tthe 😀😀 😀😀 \v"}) {
    const WordTokenizer tokenizer(text);
    const auto loaded = load_tokenizer(tokenizer.save());
    REQUIRE(loaded->kind() == "word");
    REQUIRE(loaded->save() == tokenizer.save());
    REQUIRE(loaded->vocab_size() == tokenizer.vocab_size());
    REQUIRE(loaded->encode(text) == tokenizer.encode(text));
    REQUIRE(loaded->encode_line(text) == tokenizer.encode_line(text));
  }
  // The format of version 1, which checkpoints contain.
  REQUIRE(WordTokenizer(" 猫 猫 a").save() == "maki word tokenizer 1\n5\n a猫 猫\n");
  REQUIRE(make_tokenizer("word", " ab ab")->hash() == make_tokenizer("word", " ab ab ab")->hash());
  // The map of words refers to the words of its own object.
  REQUIRE_FALSE(std::is_copy_constructible_v<WordTokenizer>);
  REQUIRE_FALSE(std::is_copy_assignable_v<WordTokenizer>);
}

TEST_CASE("words: a saved tokenizer that is damaged or forged is rejected") {
  const std::string head = "maki word tokenizer 1\n";
  REQUIRE(load_tokenizer(head + "3\n ab ab\nab\n")->vocab_size() == 5);
  for (const std::string& bad : Pieces{head,
                                       head + "3",
                                       head + "x\n",
                                       head + "-1\n",
                                       head + "+3\n ab",
                                       head + " 3\n ab",
                                       head + "0\n",
                                       head + "4\n ab",
                                       head + "03\n ab",
                                       head + "99999999999999999999\n ab",
                                       head + "18446744073709551615\n ab",
                                       head + "3\nb a",
                                       head + "3\n aa",            // characters not ascending, or twice
                                       head + "3\n ab ab",         // the last word has no newline
                                       head + "3\n abab\n ab\n",   // words not in order
                                       head + "3\n ab ab\n ab\n",  // twice
                                       head + "3\n ab\n",
                                       head + "3\n aba\n",  // no word, and a word of one character
                                       head + "3\n ab a b\n",
                                       head + "3\n ab  ab\n",
                                       head + "3\n abab \n",
                                       head + "3\n ab \n",    // not one word each
                                       head + "3\n ab ac\n",  // a character that is not in the vocabulary
                                       head + "3\n 猫 猫\n",
                                       head + "3\n \xE7\x8C \xE7\x8C\n",  // cut inside a character, or not UTF-8
                                       head + "3\n ab ab\r\n",
                                       "maki word tokenizer 2\n3\n ab ab\n"}) {
    INFO(bad);
    require_refused([&] { load_tokenizer(bad); }, {"tokenizer"});
  }
  // Every truncation and every altered byte is rejected, or gives another vocabulary in canonical form.
  const std::string good = WordTokenizer("aé猫 é猫 é猫\n猫a 猫a 猫a é猫").save();
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
  REQUIRE(refused > 10'000);
  REQUIRE(read > 0);
}

TEST_CASE("a saved word tokenizer of empty words is rejected in little memory") {
  const std::string saved = "maki word tokenizer 1\n1\na" + std::string(10'000'000, '\n');
  start_peak();
  require_refused([&] { load_tokenizer(saved); }, {"tokenizer"});
  REQUIRE(peak_bytes() < 1'000'000);
}

TEST_CASE("the share of new words is that of the last tenth, without white space, and 1 for a few words") {
  std::string known, end;
  for (int i = 0; i < 900; ++i) known += i % 2 == 0 ? " cat" : " dog";
  for (int i = 0; i < 100; ++i) end += i % 4 == 0 ? " emu" : " cat";
  REQUIRE(new_word_share(known + known) == 0);
  REQUIRE(new_word_share(known + end) == 0.25);
  REQUIRE(new_word_share(known.substr(0, 900)) == 1);
  REQUIRE(new_word_share("") == 1);
  REQUIRE(new_word_share(std::string(10000, ' ')) == 1);
  std::string long_text;
  while (long_text.size() < (std::size_t{5} << 20)) long_text += "猫 犬 ";
  REQUIRE(new_word_share(long_text) == 0);
}
