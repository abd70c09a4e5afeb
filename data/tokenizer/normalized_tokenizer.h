// A tokenizer that normalizes text before it encodes it: decode(encode(text)) == normalize(text), if no added token
// stands in the text.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer/normalization.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

class NormalizedTokenizer final : public Tokenizer {
 public:
  static constexpr std::string_view kHeader = "maki normalized tokenizer 1\n";

  /// Requires: `form` is not none, and `inner` does not normalize and has no use().
  NormalizedTokenizer(std::unique_ptr<Tokenizer> inner, Normalization form) : inner_(std::move(inner)), form_(form) {}
  /// Restores one from the bytes of save() that follow kHeader. Throws CorpusError if they are damaged.
  static std::unique_ptr<Tokenizer> load(std::string_view saved);

  std::string kind() const override { return inner_->kind(); }
  Normalization normalization() const override { return form_; }
  const BpeParts* bpe_parts() const override { return inner_->bpe_parts(); }
  std::int64_t vocab_size() const override { return inner_->vocab_size(); }
  std::size_t token_bound(std::string_view text) const override { return inner_->token_bound(text); }
  /// Characters as they are in the text, if their own normal form has a character that the vocabulary lacks, and
  /// characters of the normalized text that only a combination of characters makes.
  std::map<char32_t, std::int64_t> unknown(std::string_view text) const override;
  std::vector<std::int32_t> encode(std::string_view text) const override;
  void encode(std::string_view text, Tokens& ids) const override;
  void encode_texts(std::span<const std::string_view> texts, Tokens& ids,
                    const std::function<void()>& after) const override;
  std::vector<std::int32_t> encode_with_specials(std::string_view text) const override;
  std::string_view bytes(std::int32_t id) const override { return inner_->bytes(id); }
  std::size_t next_cut(std::string_view text, std::size_t at) const override;
  std::vector<std::int32_t> encode_line(std::string_view line) const override;
  std::string decode_line(TokenSpan ids) const override { return inner_->decode_line(ids); }

 protected:
  std::string save_encoding() const override;
  std::optional<std::int32_t> named_end() const override { return inner_->end_of_text(); }

 private:
  std::unique_ptr<Tokenizer> inner_;
  Normalization form_;
};

/// A tokenizer that normalizes before `inner` encodes; `inner` itself if the form is none. Requires: as the class.
std::unique_ptr<Tokenizer> with_normalization(std::unique_ptr<Tokenizer> inner, Normalization form);

}  // namespace maki
