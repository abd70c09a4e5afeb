// Special tokens that are written in a text, such as <|im_start|> in the prompt of a chat model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

/// Whether the vocabulary has added tokens.
bool has_specials(const Tokenizer& tokenizer);
/// A tokenizer like `tokenizer`, except that encode() finds special tokens in every text, as encode_with_specials()
/// does. It is saved like this. Throws CorpusError if the vocabulary has none.
std::shared_ptr<const Tokenizer> finding_specials(const Tokenizer& tokenizer);

/// Whether ids mean the same with both, so that a model of one can read tokens of the other. What use() says may
/// differ, and whether encode() finds special tokens (AddedToken::always), which says something about texts and not
/// about ids.
bool same_ids(const Tokenizer& a, const Tokenizer& b);

/// Whether the token of this id is a special one that encode() never gives, whatever is written.
bool is_unread_special(const Tokenizer& tokenizer, std::int32_t id);
/// The special tokens whose texts occur where encode() does not find them. Requires: the tokenizer outlives it.
class UnreadSpecials {
 public:
  explicit UnreadSpecials(const Tokenizer& tokenizer);

  /// Adds those of a text, which ends where no special token is cut.
  void add(std::string_view text);
  /// How often each occurs, as a message lists it: "<|endoftext|> (3 times)"; empty if none does.
  std::string list() const;
  /// A message for a user with what to do, which for a tokenizer that is learned from the text is something else, and
  /// also depends on whether one of them is the `separator` of its documents; empty if none occurs.
  std::string note(bool is_new, std::string_view separator = {}) const;

 private:
  const Tokenizer& tokenizer_;
  std::optional<AddedTokens> unread_;  // none if the vocabulary has no such tokens
  std::map<std::int32_t, std::int64_t> counts_;
};

}  // namespace maki
