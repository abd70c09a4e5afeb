// Texts of masked language models, in which [MASK] stands for one token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/masking.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

struct MaskedText {
  std::vector<std::int32_t> ids;    ///< of the text; the id of a mask is the first after those of the tokenizer
  std::vector<std::int32_t> masks;  ///< the indices of the masks
};

/// The arguments and errors are those of encodable_text() of train/app/encodable_text.h, which reduces what is around
/// the masks to what the tokenizer can encode. A text without [MASK] has no masks. For a tokenizer of words, a space
/// before [MASK] is part of the masked word.
MaskedText encode_masked(const Tokenizer& tokenizer, std::string_view text, std::string_view name,
                         const std::string& unknown);

}  // namespace maki
