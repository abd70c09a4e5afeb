// What a context mixer looks at: traits of tokens, contexts of a place in a text, sets of weights.
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "data/mixing/decision_mixer.h"
#include "data/mixing/text_contexts.h"
#include "data/tokenizer/char_tokenizer.h"
#include "tests/catch.h"

using namespace maki;

namespace {

// Tokens that are given, of which only the bytes matter.
class ListedTokens : public Tokenizer {
 public:
  explicit ListedTokens(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}
  std::string kind() const override { return "listed"; }
  std::int64_t vocab_size() const override { return std::ssize(tokens_); }
  std::size_t token_bound(std::string_view) const override { return 0; }
  std::vector<std::int32_t> encode(std::string_view) const override { return {}; }
  std::string_view bytes(std::int32_t id) const override { return tokens_[static_cast<std::size_t>(id)]; }
  std::string save_encoding() const override { return {}; }

 private:
  std::vector<std::string> tokens_;
};

const Tokenizer& characters() {
  static const auto tokenizer = make_tokenizer("char", "ABHKLMTabcdefghilmnorstuvwxy :\n");
  return *tokenizer;
}

TextContexts::Hashes hashes_after(TextContexts& contexts, const std::string& text) {
  for (const std::int32_t id : characters().encode(text)) contexts.follow(id);
  return contexts.hashes();
}

// The contexts in which two places in texts differ: at the ends of both.
std::vector<std::size_t> differences(const std::string& a, const std::string& b) {
  TextContexts of_a(traits_of_tokens(characters())), of_b(traits_of_tokens(characters()));
  const TextContexts::Hashes hashes_a = hashes_after(of_a, a), hashes_b = hashes_after(of_b, b);
  std::vector<std::size_t> differing;
  for (std::size_t i = 0; i < hashes_a.size(); ++i) {
    if (hashes_a[i] != hashes_b[i]) differing.push_back(i);
  }
  return differing;
}

using Contexts = std::vector<std::size_t>;

}  // namespace

TEST_CASE("traits of tokens: kinds of last characters, words, lines, and words without capitals") {
  const ListedTokens tokens({"The", " the", "the", ", ", "。", "、", "ひらがな", "カ", "漢", "7", "a\n", "\xE3", "\x81",
                             "É", "é", "ゟ", "゠", "ヿ", "!"});
  const std::vector<TokenTraits> traits = traits_of_tokens(tokens);
  using enum CharacterKind;
  const CharacterKind kinds[] = {lower,   lower,  lower,  space, stop,  comma,    hiragana, katakana, letter, digit,
                                 newline, letter, letter, upper, lower, hiragana, katakana, katakana, other};
  for (std::size_t i = 0; i < traits.size(); ++i) {
    INFO(tokens.bytes(static_cast<std::int32_t>(i)));
    const bool mark = (i >= 3 && i <= 5) || i == 16 || i == 18;
    REQUIRE(traits[i].kind == kinds[i]);
    REQUIRE(traits[i].ends_line == (i == 10));
    REQUIRE(traits[i].begins_in_word == (i != 1 && !mark));
    REQUIRE(traits[i].ends_in_word == (i != 10 && !mark));
  }
  REQUIRE(traits[0].folded == traits[1].folded);
  REQUIRE(traits[1].folded == traits[2].folded);
  REQUIRE(traits[13].folded == traits[14].folded);
  REQUIRE(traits[3].folded != traits[4].folded);    // no letters: all characters count
  REQUIRE(traits[11].folded != traits[12].folded);  // bytes that are no characters
  REQUIRE(ids_by_bytes(ListedTokens({"b", "a", "B", "ab", "a"})) == std::vector<std::int32_t>{2, 1, 4, 3, 0});
}

TEST_CASE("contexts of a place in a text see what they should, and nothing else") {
  const auto [a, b, differing] = GENERATE(table<std::string, std::string, Contexts>({
      // A capital before the last six tokens: the line, and the kinds of eight and ten characters.
      {"The cat", "the cat", {15, 16, 17}},
      {"xy one Me", "xy one me", {1, 2, 3, 4, 5, 10, 11, 13, 15, 16, 17, 19}},  // a capital
      {"ab cd ef", "xy cd ef", {8, 9, 15}},                                     // the second last word
      {"H\nab cd ef", "H\nab cd  ef", {3, 4, 5, 10, 12, 14, 15, 16, 17, 19}},   // columns
      {"K:\nhold it ab\nab", "L:\nhold it ab\nab", {11}},                       // the heading
      {"K:\nhold it ab\n\nM:\none two six\nab", "L:\nhold it ab\n\nM:\none two six\nab", {}},
      {"H\naa bb\nsix seven", "H\na aa bb\nsix seven", {14}},  // the length of the last line
      {"t axb", "t ayb", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19}},
      {"t xab", "t yab", {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 18, 19}},
      {"abx then one two ab", "aby then one two ab", {15, 20}},  // what followed the last two tokens before
  }));
  INFO(a << " | " << b);
  REQUIRE(differences(a, b) == differing);
}

TEST_CASE("contexts begin anew with a text, but know what followed") {
  TextContexts fresh(traits_of_tokens(characters())), used(traits_of_tokens(characters()));
  hashes_after(used, "K:\nThe cat sat xy");
  used.begin_text();
  REQUIRE(used.last(1) == 0);
  REQUIRE(used.word_length() == 0);
  REQUIRE(used.kinds() == 0);
  REQUIRE(hashes_after(used, "ab Thl") == hashes_after(fresh, "ab Thl"));
  REQUIRE(used.word_length() == 3);
  REQUIRE(used.kinds() == 0x344);
  REQUIRE(used.last(2) == fresh.last(2));
  used.begin_text();
  fresh.begin_text();
  const TextContexts::Hashes known = hashes_after(used, "xy"), unknown = hashes_after(fresh, "xy");
  REQUIRE(std::equal(known.begin(), known.end() - 1, unknown.begin()));
  REQUIRE(known.back() == unknown.back());
  used.begin_text();
  fresh.begin_text();
  REQUIRE(hashes_after(used, "at").back() != hashes_after(fresh, "at").back());
}

TEST_CASE("a decision mixer learns what each choice of weights tells") {
  constexpr std::size_t kMixers = DecisionMixer::kMixers;
  std::array<std::size_t, kMixers> sizes;
  sizes.fill(2);
  const std::vector<float> inputs = {0.3F, 1};
  for (std::size_t mixer = 0; mixer <= kMixers; ++mixer) {  // or the first correction
    DecisionMixer decisions(2, sizes);
    double loss = 0;
    for (int i = 0; i < 3000; ++i) {
      const bool bit = i * 7 % 5 % 2 == 0;
      DecisionMixer::Choice choice{};
      if (mixer < kMixers) choice.sets[mixer] = bit ? 1 : 0;
      if (mixer == kMixers) choice.corrections[0] = bit ? 1 : 0;
      const double p = decisions.probability(inputs, choice);
      if (i >= 2000) loss -= std::log(bit ? p : 1 - p) / 1000;
      decisions.learn(inputs, bit, {.mixers = 0.02F, .results = 0.002F});
    }
    INFO(mixer);
    CAPTURE(loss);
    REQUIRE(loss < (mixer < kMixers ? 0.2 : 0.5));  // a correction has a share of 0.3
  }
}

TEST_CASE("the weight of an input can be set in all sets of all mixers") {
  std::array<std::size_t, DecisionMixer::kMixers> sizes;
  sizes.fill(3);
  DecisionMixer decisions(2, sizes);
  decisions.set_weight(0, 0);
  decisions.set_weight(1, 0.5F);
  const std::vector<float> inputs = {7, 2};
  for (std::size_t set = 0; set < 3; ++set) {
    DecisionMixer::Choice choice{};
    choice.sets.fill(set);
    REQUIRE(std::abs(decisions.probability(inputs, choice) - static_cast<double>(squash(1))) < 0.01);
  }
}
