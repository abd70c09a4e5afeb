// A dataset: the training and validation tokens of a corpus.
//
// Thread safety: a dataset may be read on several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

struct Dataset {
  std::shared_ptr<const Tokenizer> tokenizer;
  Tokens train, val;            ///< one piece per file; val is empty if val_fraction is 0
  std::string corpus_hash;      ///< Corpus::hash
  std::int64_t characters = 0;  ///< of the whole corpus
  /// The lowest possible loss in nats per validation token (without validation text, per token of the whole text), if
  /// it is known: for the built-in stories, from the entropy of their grammar.
  std::optional<double> best_possible_loss;
};

/// Code points in all pieces of well-formed text together.
std::int64_t count_code_points(const std::vector<std::string_view>& pieces);
/// The tokens of the pieces, one piece each. Throws CorpusError if a piece has characters that the vocabulary lacks.
Tokens encode_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces);

/// Splits the corpus (split_text()) and encodes both parts, with the given tokenizer or else with a new one of
/// `tokenizer_kind` and `tokenizer_options`, which learns from the training text and can encode both. Throws
/// CorpusError if the training text, or the validation text with val_fraction > 0, has fewer than block_size + 1
/// tokens, or if the given tokenizer lacks characters of the text.
Dataset make_dataset(const Corpus& corpus, double val_fraction, std::int64_t block_size,
                     const std::string& tokenizer_kind, std::shared_ptr<const Tokenizer> tokenizer = nullptr,
                     const TokenizerOptions& tokenizer_options = {});

}  // namespace maki
