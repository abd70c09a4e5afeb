// A predictor of text that learns with every token it reads: counts in many contexts at once, mixed by weights that are
// learnt as well. This is what the compressors of the PAQ family do (Mahoney 2005), on tokens instead of bytes, and the
// strongest thing that can be had without a network.
//
// Each token is a few binary decisions (TokenCode). For each of them, every context gives two probabilities: how often
// a 1 followed here, and how often it followed such a history of zeros and ones anywhere. Logistic mixers, whose
// weights are chosen by different contexts, combine them; two corrections by context follow. A network may take part:
// its probabilities are mixed with the result in the same way.
//
// Thread safety: none; objects are used by one thread at a time. No result depends on a number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/mixing/context_table.h"
#include "data/mixing/logistic.h"
#include "data/mixing/repeat_finder.h"
#include "data/mixing/token_code.h"
#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The loss of one token, in nats.
struct MixedLoss {
  double counts = 0;  ///< of the counts alone
  double mixed = 0;   ///< of the counts mixed with the other predictor; without one, that of the counts
};

class ContextMixer {
 public:
  /// `counts` are those of the tokens in a text like the one to be read, from which their code is made; `expected` is
  /// about how many tokens will be read, from which the memory follows (at most 160 MB). Requires: the tokenizer
  /// outlives the object.
  ContextMixer(const Tokenizer& tokenizer, std::span<const std::int64_t> counts, std::int64_t expected);
  ContextMixer(const ContextMixer&) = delete;
  ContextMixer& operator=(const ContextMixer&) = delete;

  /// Predicts a token, then learns it. `other` is the distribution over all tokens of another predictor, or empty.
  /// Throws Error if it has another size.
  MixedLoss read(std::int32_t token, std::span<const float> other = {});
  /// The next token begins another text.
  void begin_text();

 private:
  static constexpr std::size_t kContexts = 13;  // twelve by hash, and the empty one
  static constexpr std::size_t kRepeats = 2;
  static constexpr std::size_t kInputs = 3 * kContexts + kRepeats + 1;
  static constexpr std::size_t kSelectors = 3;

  void hash_contexts();
  void collect(std::int32_t node);
  std::size_t confidence() const;
  double predict(std::int32_t node);
  double predict_with(double other, std::int32_t node);
  void learn(bool bit);
  void learn_with(bool bit);
  void follow(std::int32_t token);

  TokenCode code_;
  std::vector<bool> in_word_;       // whether a token is part of a word
  std::vector<bool> ends_line_;     // whether it ends in a newline
  std::vector<std::int32_t> text_;  // all that was read
  std::size_t begin_ = 0;           // of the current text
  // Hashes of the word so far, of the two words before it, and of the line so far.
  std::uint64_t word_ = 0, last_word_ = 0, second_last_word_ = 0, line_ = 0;

  std::vector<ContextTable> tables_;
  std::vector<DecisionCount> without_context_;  // by node
  std::array<HistoryMap, kContexts> histories_;
  std::vector<RepeatFinder> repeats_;
  std::vector<LogisticMixer> mixers_, mixers_with_other_;
  LogisticMixer last_mixer_;
  ProbabilityCorrection by_last_, by_last_two_, of_other_;
  BranchSums sums_;

  // The current decision.
  std::array<std::uint64_t, kContexts - 1> hashes_{};
  std::array<DecisionCount*, kContexts> counted_{};
  std::array<float, kInputs> inputs_{};
  std::array<float, kSelectors> mixed_{};
  std::array<float, 3> with_other_{};
  std::int64_t decisions_ = 0;
};

}  // namespace maki
