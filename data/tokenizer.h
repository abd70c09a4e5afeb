// Tokenizers: text to ids and back. Bytes in are bytes out: decode(encode(text)) == text, always.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokens.h"

namespace maki {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string kind() const = 0;  ///< "byte", "char"
  virtual std::int64_t vocab_size() const = 0;
  /// No fewer than a text has tokens, and not many more.
  virtual std::size_t token_bound(std::string_view text) const = 0;
  /// The characters of well-formed text that the vocabulary lacks, with their numbers.
  virtual std::map<char32_t, std::int64_t> unknown(std::string_view) const { return {}; }
  /// Throws CorpusError naming what the vocabulary lacks.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The bytes of one id. Throws CorpusError outside [0, vocab_size).
  virtual std::string_view bytes(std::int32_t id) const = 0;
  std::string decode(TokenSpan ids) const;
  /// Appends the ids of a text. It is encoded in blocks of whole characters, so that a long text needs no memory beyond
  /// that of `ids`.
  void encode(std::string_view text, Tokens& ids) const;

  /// Canonical bytes from which load_tokenizer() makes the same tokenizer.
  virtual std::string save() const = 0;
  /// What it is known by: XXH3-128 of save(), in hexadecimal.
  std::string hash() const;
};

/// 256 ids, one a byte. Any input whatever.
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

/// One id for each code point of a text, in ascending order.
class CharTokenizer : public Tokenizer {
 public:
  /// The vocabulary of a well-formed UTF-8 text.
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
  std::vector<std::uint32_t> ends_;  // of each character's bytes in it
  std::vector<std::int32_t> ids_;    // by code point, up to the largest; -1: not in the vocabulary
};

/// The sentence that names characters which a vocabulary of this size lacks: a dozen at most, the most frequent first.
std::string unknown_sentence(std::int64_t vocab_size, const std::map<char32_t, std::int64_t>& unknown);

/// "char" or "byte" for a text. Throws CorpusError for another kind.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, std::string_view text);
/// From what save() wrote. Throws CorpusError on anything else.
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view saved);

}  // namespace maki
