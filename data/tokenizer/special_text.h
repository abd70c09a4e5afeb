// Special tokens that are written in a text, such as <|im_start|> in the prompt of a chat model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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
/// How often the texts of special tokens occur that encode() does not find, as a message lists it: "<|endoftext|> (3
/// times)"; empty if none occurs.
std::string unread_specials(const Tokenizer& tokenizer, std::string_view text);
/// A message for a user about unread_specials() of a text, with what to do, which for a tokenizer that is learned from
/// the text is something else; empty if there are none.
std::string note_on_unread_specials(const Tokenizer& tokenizer, bool is_new, std::string_view text);

}  // namespace maki
