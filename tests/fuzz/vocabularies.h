// Vocabularies for the targets that read tokenizers.
#pragma once

#include <string>

#include "data/tokenizer/tokenizer_files.h"

namespace maki::fuzz {

/// A byte-level BPE tokenizer with some merges.
std::unique_ptr<Tokenizer> small_bpe(Normalization normalization = Normalization::none);
/// What a tokenizer must do that a file described: it is saved and loaded again, and decodes what it encodes.
void use_tokenizer(const Tokenizer& tokenizer);

}  // namespace maki::fuzz
