// Byte-level BPE, as in GPT-2: a pre-tokenizer cuts the text into pieces, and the bytes of each piece are merged into
// tokens. Every byte is a token, so that any text can be encoded, even if it is not UTF-8.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_encoder.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/token_list.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The special token that ends a document, in the vocabularies that are learned here.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

/// What a byte-level BPE tokenizer consists of.
struct BpeParts {
  std::string rule = "gpt2";      ///< of the pre-tokenizer
  TokenList tokens;               ///< the bytes of every token; of an added token its text
  std::vector<BpeMerge> merges;   ///< in order of rank; two of them may make the same token
  std::vector<AddedToken> added;  ///< in ascending order of their ids
  /// A piece that is a token, but not an added one, is that token, whatever its merges would give.
  bool whole_pieces = false;
};

class BpeTokenizer final : public Tokenizer {
 public:
  /// Throws CorpusError unless the rule exists, the tokens are distinct, not empty and at most kMaxBpeVocabulary, each
  /// byte is a token, merges make tokens of their two parts, no pair is merged twice, and added tokens are not bytes
  /// and have no part in merges. Unless use() says otherwise, the special token that ends a document is the first that
  /// there is of kEndOfText, <|end_of_text|> and </s>.
  explicit BpeTokenizer(BpeParts parts);
  BpeTokenizer(const BpeTokenizer&) = delete;  // index_ refers to the tokens of this object
  BpeTokenizer& operator=(const BpeTokenizer&) = delete;

  std::string kind() const override { return "bpe"; }
  const BpeParts* bpe_parts() const override { return &parts_; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(parts_.tokens.size()); }
  std::size_t token_bound(std::string_view text) const override { return text.size(); }
  std::vector<std::int32_t> encode(std::string_view text) const override;
  /// Encodes parts of the text on all threads. Throws CorpusError for a piece of 2^31 bytes or more, as all forms do.
  void encode(std::string_view text, Tokens& ids) const override;
  void encode_texts(std::span<const std::string_view> texts, Tokens& ids,
                    const std::function<void()>& after) const override;
  std::vector<std::int32_t> encode_with_specials(std::string_view text) const override;
  std::vector<std::int32_t> encode_normalized(std::string_view text, Normalization form, bool specials) const override;
  bool finds_added_tokens() const override { return added_.any_always(); }
  std::string_view bytes(std::int32_t id) const override;
  std::size_t next_cut(std::string_view text, std::size_t at) const override;

 protected:
  std::string save_encoding() const override;
  std::optional<std::int32_t> named_end() const override { return named_end_; }

 private:
  class Cache;
  void check_tokens();
  void add_merges();
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void encode_part(std::string_view part, Cache& cache, std::vector<std::int32_t>& ids) const;

  BpeParts parts_;
  PreTokenizer pre_tokenizer_;
  TokenIndex index_;
  BpeEncoder encoder_;
  AddedTokens added_;
  std::optional<std::int32_t> named_end_;
};

/// Learns a vocabulary of at most `vocab_size` tokens from texts, none across two of them: the 256 bytes, tokens that
/// are merged from them, and kEndOfText as the last. Fewer tokens if no pair occurs twice; 257 for an empty text.
/// Throws CorpusError unless vocab_size is in [257, kMaxBpeVocabulary], and what train_bpe() throws.
BpeParts learn_bpe(const TextToLearn& text, std::int64_t vocab_size);
/// Tokens: at least the 256 bytes and kEndOfText; at most 16.8 million, more than any model has.
inline constexpr std::int64_t kMinBpeVocabulary = 257, kMaxBpeVocabulary = 1 << 24;

/// The row of this kind in the table of tokenizer.cpp.
extern const TokenizerKind kBpeTokenizer;

}  // namespace maki
