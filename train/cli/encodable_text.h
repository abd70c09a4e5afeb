// Texts that a user gives to a model, reduced to what its tokenizer can encode.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The text without the characters that the vocabulary lacks, or with a replacement for them; stderr tells how many
/// there were. `unknown` names the policy for them, `name` the text. Throws CorpusError if the text is not UTF-8, and
/// what known_text() throws.
std::string encodable_text(const Tokenizer& tokenizer, std::string_view text, std::string_view name,
                           const std::string& unknown);
/// The same for the pieces of one text.
std::vector<std::string> encodable_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces,
                                          std::string_view name, const std::string& unknown);

}  // namespace maki
