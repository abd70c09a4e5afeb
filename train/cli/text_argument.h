// Texts from the command line that a model reads.
#pragma once

#include <string>
#include <string_view>

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The text without the characters that the vocabulary lacks, or with a replacement for them; stderr tells how many
/// there were. `unknown` names the policy for them, `name` the text. Throws CorpusError if the text is not UTF-8, and
/// what known_text() throws.
std::string known_argument(const Tokenizer& tokenizer, std::string_view text, std::string_view name,
                           const std::string& unknown);

}  // namespace maki
