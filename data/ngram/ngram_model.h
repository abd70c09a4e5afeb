// An interpolated n-gram model: what counting alone knows about a text. Modified Kneser–Ney smoothing (Chen and Goodman
// 1999) over all orders up to that of the model, which is six at most. A network that does not predict better than this
// has not learned anything yet that was worth its time.
//
// Thread safety: const functions may be called on several threads at once while none counts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "autograd/core/stop_request.h"
#include "data/ngram/ngram_level.h"
#include "data/tokenizer/tokens.h"

namespace maki {

/// The longest n-grams that are counted: six tokens, the last of which is predicted from the five before. Of the
/// lengths 3 to 6 it had the lowest loss (docs/decisions/044-counting.md).
inline constexpr int kMaxCountedNgram = 6;

/// The last tokens of a text, as a model needs them to predict the next one. Empty at the beginning of a text. Belongs
/// to the model that made it.
struct NgramContext {
  /// The entry of the last k tokens in the level of n-grams of k tokens; kNoNgram if they were never counted.
  std::array<std::uint32_t, kMaxCountedNgram> last{};
  int length = 0;  ///< known tokens, at most the order of the model − 1
};

/// Tokens [begin, end) of a text.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
};

struct NgramLimits {
  /// Distinct n-grams of all orders together, of about 40 bytes each.
  std::int64_t ngrams = std::int64_t{4} << 20;
  std::int64_t tokens = std::int64_t{16} << 20;  ///< read by one call of count() or evaluate()
  // Both are looked at between blocks of 16,384 tokens, so the block that reaches a limit is still read to its end.
};

struct NgramLoss {
  double loss = 0;           ///< mean over the targets, in nats per token; 0 without targets
  std::int64_t targets = 0;  ///< tokens that were predicted: all but the first of each piece
  double share = 0;          ///< of the tokens of the text that were read; 1 for a text without tokens
};

class NgramModel {
 public:
  /// With `restart`, a context begins anew with each of these tokens, which end documents: no context continues beyond
  /// one. Requires: 1 <= order <= kMaxCountedNgram, vocab_size >= 1.
  explicit NgramModel(std::int64_t vocab_size, int order = kMaxCountedNgram, NgramLimits limits = {},
                      std::optional<std::int32_t> restart = std::nullopt);

  /// Counts a text, whose pieces are separate texts, in addition to what was counted before, and then fits the
  /// discounts. A text beyond the limits is counted in blocks that are spread evenly over it, until a limit is reached.
  /// Returns the share of its tokens that was counted, 1 for a text without tokens. `stop` is asked
  /// before each block of 16,384 tokens, and ends the counting.
  double count(TokenSpan text, const StopRequest& stop = {});
  /// The blocks that the last call of count() has read, in the order in which it read them, which is not that of the
  /// text.
  const std::vector<TokenRange>& counted() const { return counted_; }
  /// The mean loss over the targets of a text, of blocks that are spread evenly over it if it is beyond the limit.
  NgramLoss evaluate(TokenSpan text, const StopRequest& stop = {}) const;

  /// The probability of `token` after `context`: positive, and the sum over all tokens is 1. Requires: 0 <= token <
  /// vocab_size.
  double probability(const NgramContext& context, std::int32_t token) const;
  /// The probability of `token` after a text, of which only the last order − 1 tokens count.
  double probability(std::span<const std::int32_t> text, std::int32_t token) const;
  /// The context that follows if `token` is read.
  NgramContext next(const NgramContext& context, std::int32_t token) const;
  /// Counts one more `token` after `context`, and returns the context that follows. The limit of n-grams is left to the
  /// caller (is_full()). The discounts stay those that were fitted last.
  NgramContext observe(const NgramContext& context, std::int32_t token);
  /// Estimates the discounts of every order from the counts.
  void fit_discounts();

  /// Whether one more token could exceed the limit of n-grams.
  bool is_full() const;
  std::int64_t ngrams() const;  ///< distinct n-grams of all orders together
  /// The n-grams of k + 1 tokens. Requires: 0 <= k < order().
  const NgramLevel& level(int k) const { return levels_[static_cast<std::size_t>(k)]; }
  std::int64_t vocab_size() const { return vocab_size_; }
  std::optional<std::int32_t> restart() const { return restart_; }
  int order() const { return static_cast<int>(levels_.size()); }

 private:
  NgramContext read(const NgramContext& context, std::int32_t token, bool counts);

  std::int64_t vocab_size_;
  NgramLimits limits_;
  std::optional<std::int32_t> restart_;
  std::vector<NgramLevel> levels_;  // [k]: n-grams of k + 1 tokens
  std::vector<TokenRange> counted_;
};

/// What NgramModel::evaluate() does, for any model that reads and predicts: next() and log_probability() take a context
/// and the token after it. Reads blocks of 16,384 tokens until there are at least `most_tokens`, so all of a text that
/// has no more.
NgramLoss evaluate_ngrams(TokenSpan text, int order, std::int64_t most_tokens, const StopRequest& stop,
                          const std::function<NgramContext(const NgramContext&, std::int32_t)>& next,
                          const std::function<double(const NgramContext&, std::int32_t)>& log_probability);

}  // namespace maki
