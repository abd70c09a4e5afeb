// Texts that a user gives to a model, reduced to what its tokenizer can encode.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The text without the characters that the vocabulary lacks, or with a replacement for them; stderr tells how many
/// there were. `unknown` is the value of --unknown, the policy for them; `name` is what messages call the text, such as
/// "prompt". Throws CorpusError, whose message begins with the name, if the text is not UTF-8 (with the offset of the
/// first invalid byte) or known_text() rejects it; Error for an unknown policy.
std::string encodable_text(const Tokenizer& tokenizer, std::string_view text, std::string_view name,
                           const std::string& unknown);
/// encodable_text() of the pieces of one text: one result per piece, which may be empty. Offsets count from the first
/// piece. Requires: the pieces are views of the same string, in ascending order.
std::vector<std::string> encodable_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces,
                                          std::string_view name, const std::string& unknown);

}  // namespace maki
