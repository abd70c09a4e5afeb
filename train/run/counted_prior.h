// Counted n-grams as the prior of a model (nn/prior.h), and the priors of windows of a text.
//
// Thread safety: everything here is immutable or a function, and may be used on several threads at once.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "autograd/tensor.h"
#include "data/ngram/held_out_counts.h"
#include "data/ngram/ngram_trie.h"
#include "nn/prior.h"

namespace maki {

class CountedPrior final : public TokenPrior {
 public:
  explicit CountedPrior(std::shared_ptr<const NgramTrie> counts) : counts_(std::move(counts)) {}
  /// Restores the counts of a checkpoint (CheckpointState::ngram_counts). Throws CorpusError if they are damaged or for
  /// another vocabulary.
  CountedPrior(const std::string& saved, std::int64_t vocab_size)
      : CountedPrior(std::make_shared<const NgramTrie>(load_ngram_trie(saved, vocab_size))) {}

  std::int64_t vocab_size() const override { return counts_->vocab_size(); }
  std::int64_t context_tokens() const override { return counts_->order() - 1; }
  void log_probabilities(std::span<const std::int32_t> before, std::span<const std::int32_t> ids,
                         std::span<float> out) const override;
  const NgramTrie& counts() const { return *counts_; }

 private:
  std::shared_ptr<const NgramTrie> counts_;
};

/// The prior of windows of `length` tokens of a text, which begin at the positions `starts`: [starts, length, V]
/// float32, the log-probabilities of the token that follows each of them. Unlike the model, it knows the tokens before
/// a window. After the last token of the text follows the first; no context continues from one piece into the next.
/// With held-out counts, which must be those of this text, the prior of a token that is predicted is that of the text
/// without the part that this token is in. Requires: every start is in [0, tokens of the text).
Tensor prior_of_windows(const NgramTrie& counts, TokenSpan text, std::span<const std::int64_t> starts,
                        std::int64_t length, const HeldOutCounts* held_out = nullptr);

}  // namespace maki
