// Bytes as tokens.
#pragma once

#include "data/tokenizer/tokenizer.h"

namespace maki {

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

 protected:
  std::string save_encoding() const override;

 private:
  std::string all_;  // byte i at offset i
};

/// The row of this kind in the table of tokenizer.cpp.
extern const TokenizerKind kByteTokenizer;

}  // namespace maki
