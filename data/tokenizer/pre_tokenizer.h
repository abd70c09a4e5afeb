// Cuts text into the pieces that byte-level BPE encodes independently of each other: roughly words with the space
// before them, numbers, punctuation and white space. The rules are regular expressions of known tokenizers, run by
// PCRE2.
//
// Thread safety: a pre-tokenizer may be used by several threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

/// White space as Unicode defines it.
bool is_white_space(char32_t c);

class PreTokenizer {
 public:
  /// The rule of this name. Throws CorpusError if there is none.
  explicit PreTokenizer(const std::string& rule);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  const std::string& rule() const { return rule_; }

  /// Calls `piece` for the pieces of a text, in order; together they are the text. A run of bytes that are not UTF-8 is
  /// a piece of its own. Throws CorpusError if PCRE2 fails; what `piece` throws is passed on.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

  /// The first position, of 1 and more and from `at` on, where it is known that this rule begins a new piece, whatever
  /// stands before and after: before a space, tab, line end or U+3000 that follows bytes that are not UTF-8, a letter
  /// or digit of ASCII, kana, a Chinese character or a Korean syllable, or, with the rule gpt2, any character that is
  /// not white space. There may be earlier ones. text.size() if there is none. Requires: at <= text.size().
  std::size_t next_cut(std::string_view text, std::size_t at) const;

  /// The names of all rules: gpt2, cl100k (GPT-4 and Llama 3), qwen2, o200k (GPT-4o).
  static std::vector<std::string> rules();
  /// The rule whose expression a tokenizer.json writes like this; empty if there is none.
  static std::string rule_of_expression(std::string_view expression);
  /// The expression of a rule as a tokenizer.json writes it. Requires: the rule exists.
  static std::string expression_of_rule(const std::string& rule);

 private:
  struct Compiled;
  std::string rule_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace maki
