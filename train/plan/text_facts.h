// What a plan has to know about a text.
#pragma once

#include <cstdint>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

struct TextFacts {
  std::int64_t bytes = 0, characters = 0;
  std::int64_t distinct = 0;  ///< different characters
  /// With the tokenizer that the user has fixed, if there is one: the number of tokens, which may be an upper bound,
  /// and the size of the vocabulary.
  std::int64_t tokens = 0, vocabulary = 0;
};
/// `tokenizer`: the one that the user has fixed, if it is neither char nor byte.
TextFacts text_facts(const Corpus& corpus, const Tokenizer* tokenizer = nullptr);

}  // namespace maki
