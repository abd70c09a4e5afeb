// Contextual vectors of the tokens of short texts, and how similar they are: the vector of "bank" depends on the words
// around it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "nn/models/encoder.h"

namespace maki {

/// The tokens of a text, and a vector for each: [T, C].
struct EmbeddedText {
  std::vector<std::int32_t> ids;
  Tensor vectors;
};
/// Throws CorpusError if the vocabulary lacks characters of the text, and Error if it is empty or has more tokens than
/// the model has positions.
EmbeddedText embed_text(const Encoder& encoder, const Tokenizer& tokenizer, std::string_view text);

/// A place in a list of texts: the index of the text, that of a token in it, and how many tokens are there.
struct Occurrence {
  std::size_t text, position, tokens;
};
/// Two occurrences of the same word, the tokens of the first, and the cosine of the angle between the means of their
/// vectors (0 if one of them is zero).
struct Similarity {
  std::vector<std::int32_t> ids;
  Occurrence first, second;
  double cosine;
};
/// The ids of a word, where it begins a line and where a space is before it, which may be part of its first token.
std::vector<std::vector<std::int32_t>> spellings(const Tokenizer& tokenizer, std::string_view word);
/// All pairs of occurrences of consecutive tokens that are one of the spellings, also within one text and where they
/// overlap, in the order of the texts; empty if there are fewer than two occurrences. Requires: no spelling is empty.
std::vector<Similarity> similarities(const std::vector<EmbeddedText>& texts,
                                     const std::vector<std::vector<std::int32_t>>& spellings);
/// All pairs of occurrences of every single token that is in at least two of the texts, in the order of the ids.
std::vector<Similarity> shared_similarities(const std::vector<EmbeddedText>& texts);

}  // namespace maki
