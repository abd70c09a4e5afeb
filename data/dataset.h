// A dataset: a corpus in tokens, split in two.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/tokenizer.h"

namespace maki {

struct Dataset {
  std::shared_ptr<const Tokenizer> tokenizer;
  Tokens train, val;  ///< one piece per file; val is empty when val_fraction is 0
  std::string corpus_hash;
  std::int64_t characters = 0;
  /// Nats a validation token at best (of all tokens without validation), where the corpus knows: by the entropy of the
  /// story grammar.
  std::optional<double> best_loss;
};

std::int64_t count_code_points(const std::vector<std::string_view>& pieces);
Tokens encode_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces);

/// Splits by characters and encodes each side; the tokenizer is that of the whole text, or the one given. Throws
/// CorpusError when either side has fewer than block_size + 1 tokens, naming both numbers.
Dataset make_dataset(const Corpus& corpus, double val_fraction, std::int64_t block_size,
                     const std::string& tokenizer_kind, std::shared_ptr<const Tokenizer> tokenizer = nullptr);

}  // namespace maki
