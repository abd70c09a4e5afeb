// Characters as tokens.
#pragma once

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// One id per code point of the vocabulary, in ascending order of the code points.
class CharTokenizer : public Tokenizer {
 public:
  /// The vocabulary consists of all code points of the text, none if it is empty. Requires: it is well-formed UTF-8.
  explicit CharTokenizer(const TextToLearn& text);
  std::string kind() const override { return "char"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(ends_.size()); }
  std::size_t token_bound(std::string_view text) const override;
  std::map<char32_t, std::int64_t> unknown(std::string_view text) const override;
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string_view bytes(std::int32_t id) const override;

 protected:
  std::string save_encoding() const override;

 private:
  std::int32_t id_of(char32_t c) const { return c < ids_.size() ? ids_[c] : -1; }

  std::string characters_;           // the vocabulary, ascending, as UTF-8
  std::vector<std::uint32_t> ends_;  // for each id the end of its character in characters_
  std::vector<std::int32_t> ids_;    // by code point, up to the largest in the vocabulary; -1: not in the vocabulary
};

/// The row of this kind in the table of tokenizer.cpp.
extern const TokenizerKind kCharTokenizer;

}  // namespace maki
