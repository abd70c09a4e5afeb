// Tokenizers: text to token ids and back. Lossless: decode(encode(text)) == text for every text that can be encoded.
//
// Thread safety: tokenizers are immutable and may be used by several threads at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokens.h"

namespace maki {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string kind() const = 0;  ///< "byte", "char"
  virtual std::int64_t vocab_size() const = 0;
  /// An upper bound on the number of tokens of a text, for reserving memory; usually close to it.
  virtual std::size_t token_bound(std::string_view text) const = 0;
  /// The characters of well-formed UTF-8 text that the vocabulary lacks, each with the number of its occurrences.
  virtual std::map<char32_t, std::int64_t> unknown(std::string_view) const { return {}; }
  /// The ids of a text. Throws CorpusError, naming the characters, if the vocabulary lacks some, or if a tokenizer that
  /// needs UTF-8 gets other bytes.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The bytes of one id, valid as long as the tokenizer. Throws CorpusError if the id is outside [0, vocab_size).
  virtual std::string_view bytes(std::int32_t id) const = 0;
  /// The concatenated bytes of the ids. Throws as bytes() does.
  std::string decode(TokenSpan ids) const;
  /// Appends the ids of a text to `ids`. Encodes blocks of whole characters, so that a long text needs hardly any memory
  /// beyond that of `ids`.
  void encode(std::string_view text, Tokens& ids) const;

  /// Canonical bytes from which load_tokenizer() restores the same tokenizer.
  virtual std::string save() const = 0;
  /// Identifies the tokenizer: XXH3-128 of save(), in hexadecimal.
  std::string hash() const;
};

/// 256 ids, one per byte. Encodes any bytes.
class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer();
  std::string kind() const override { return "byte"; }
  std::int64_t vocab_size() const override { return 256; }
  std::size_t token_bound(std::string_view text) const override { return text.size(); }
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string_view bytes(std::int32_t id) const override;
  std::string save() const override;

 private:
  std::string all_;  // byte i at offset i
};

/// One id per code point of the vocabulary, in ascending order of the code points.
class CharTokenizer : public Tokenizer {
 public:
  /// The vocabulary consists of the code points of `text`. Requires: `text` is well-formed UTF-8.
  explicit CharTokenizer(std::string_view text);
  std::string kind() const override { return "char"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(ends_.size()); }
  std::size_t token_bound(std::string_view text) const override;
  std::map<char32_t, std::int64_t> unknown(std::string_view text) const override;
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string_view bytes(std::int32_t id) const override;
  std::string save() const override;

 private:
  std::int32_t id_of(char32_t c) const { return c < ids_.size() ? ids_[c] : -1; }

  std::string characters_;           // the vocabulary, ascending, as UTF-8
  std::vector<std::uint32_t> ends_;  // for each id the end of its character in characters_
  std::vector<std::int32_t> ids_;    // by code point, up to the largest in the vocabulary; -1: not in the vocabulary
};

/// The error message for characters that a vocabulary of this size lacks. Lists at most 12, the most frequent first.
std::string unknown_sentence(std::int64_t vocab_size, const std::map<char32_t, std::int64_t>& unknown);

/// A new tokenizer of kind "char", with the vocabulary of `text`, or "byte". Throws CorpusError for any other kind.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, std::string_view text);
/// Restores a tokenizer from the bytes of save(). Throws CorpusError for any other bytes.
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view saved);

}  // namespace maki
