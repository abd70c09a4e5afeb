// One token per word, for text whose words are separated by spaces, such as pre-tokenized translation data. A word is a
// run of characters other than space, \t, \n, \r, \v and \f. With the space before it, it is one token, so decoding is
// concatenation, as in GPT-2. Words that occur only once in the text that the vocabulary was made from, and words that
// do not occur in it, are spelled character by character, so no token for unknown words is needed and nothing is lost.
#pragma once

#include <string>
#include <vector>

#include "data/tokenizer/char_tokenizer.h"
#include "data/tokenizer/token_list.h"

namespace maki {

extern const TokenizerKind kWordTokenizer;

/// The share of the words in the last tenth of a text that do not occur before it, repeated ones counted each time; 1
/// if there are fewer than 100 words in it. Of a longer text, only the first 4 MiB count. Hardly any word is new in
/// texts that are made from a small vocabulary. Requires: the text is well-formed UTF-8.
double new_word_share(std::string_view text);

class WordTokenizer final : public Tokenizer {
 public:
  /// The vocabulary: the characters of the text, in ascending order, then the words of two or more characters (a space
  /// before the word counts) that occur at least twice in its learned part, in byte order. Requires: the text is
  /// well-formed UTF-8.
  explicit WordTokenizer(const TextToLearn& text);
  /// Exactly these characters and words. Throws CorpusError unless there is a character, and the words are distinct,
  /// ascending, each one word of two or more characters (a space before it counts), and spelled with these characters.
  WordTokenizer(std::string_view characters, TokenList words);
  WordTokenizer(const WordTokenizer&) = delete;  // index_ refers to the words of this object
  WordTokenizer& operator=(const WordTokenizer&) = delete;

  std::string kind() const override { return "word"; }
  std::int64_t vocab_size() const override {
    return characters_.vocab_size() + static_cast<std::int64_t>(words_.size());
  }
  std::size_t token_bound(std::string_view text) const override;
  std::map<char32_t, std::int64_t> unknown(std::string_view text) const override { return characters_.unknown(text); }
  std::vector<std::int32_t> encode(std::string_view text) const override;
  using Tokenizer::encode;
  std::string_view bytes(std::int32_t id) const override;

  /// The words of a line begin with a space, so that the first word is the same token as elsewhere in the line.
  std::vector<std::int32_t> encode_line(std::string_view line) const override;
  std::string decode_line(TokenSpan ids) const override;
  std::size_t next_cut(std::string_view text, std::size_t at) const override;

 protected:
  std::string save_encoding() const override;

 private:
  CharTokenizer characters_;
  TokenList words_;
  TokenIndex index_;  // of words_
};

}  // namespace maki
