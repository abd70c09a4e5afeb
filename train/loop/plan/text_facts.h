// What a plan has to know about a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

/// Of a corpus that was prepared, `distinct` is the size of the vocabulary, and new_words and new_ngrams stay 1.
struct TextFacts {
  std::int64_t bytes = 0, characters = 0;
  std::int64_t distinct = 0;  ///< different characters
  std::int64_t frequent = 0;  ///< of them, the most frequent ones that make up 98 % of the text
  double new_words = 1;       ///< new_word_share(); 1 with a tokenizer that the user has fixed
  /// Of the sequences of kMaxCountedNgram characters in the last tenth of the text, the share that does not occur
  /// before it (of a text of more than 4 MiB, only the last 4 MiB count); 1 with a tokenizer that the user has fixed.
  double new_ngrams = 1;
  /// What is best learned of this text, if there is time for it: char, byte, word or bpe.
  std::string tokenizer = "char";
  /// The number of tokens and the size of the vocabulary: with the tokenizer that the user has fixed, or else with
  /// `tokenizer`, if that is learned from the text (word or bpe).
  std::int64_t tokens = 0, vocabulary = 0;
  /// The lengths of the documents, in any unit, if sequences are not to cross them (Config::respect_documents).
  std::vector<std::int64_t> documents = {};
};
/// The share of the positions of the sequences of a text of `tokens` tokens that is not filling: below 1 if sequences
/// of up to block_size tokens do not cross documents.
double used_share(const TextFacts& text, std::int64_t tokens, std::int64_t block_size);

/// Up to this share of new words, a text has a small vocabulary, and whole words are good tokens. That of @stories is
/// 0.005, that of prose, code and lists from 0.12 on.
inline constexpr double kFewNewWords = 0.02;
/// Up to this share of new n-grams, a text repeats itself so much that tables learn more of its characters than a
/// network on a prior, and large byte pairs on a prior most: @stories-ja (0.13), 50 MB of Python (0.08). Of eight other
/// texts, which are learned better with a prior, the share is from 0.2 on.
inline constexpr double kFewNewNgrams = 0.15;
/// The vocabulary of the tokenizer byte.
inline constexpr std::int64_t kByteValues = 256;

/// `tokenizer`: the one that the user has fixed, if it is neither char nor byte. `documents`: whether their lengths are
/// wanted. Words are those of the training part, as in a run with this `val_fraction`.
TextFacts text_facts(const Corpus& corpus, const Tokenizer* tokenizer = nullptr, bool documents = false,
                     double val_fraction = 0.1);

}  // namespace maki
