// A predictor of text that learns with every token it reads: counts in many contexts at once, mixed by weights that are
// learnt as well. This is what the compressors of the PAQ family do (Mahoney 2005), on tokens instead of bytes, and the
// strongest thing that can be had without a network.
//
// Each token is a few binary decisions (TokenCode). For each of them, every context gives two probabilities: how often
// a 1 followed here, and how often it followed such a history of zeros and ones anywhere. Logistic mixers, whose
// weights are chosen by different contexts, combine them; two corrections by context follow. A network may take part:
// its probability is one more input of a second set of mixers, which begin with the weights of the first.
//
// Thread safety: none; objects are used by one thread at a time. No result depends on a number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

/// From the inputs of a decision to its probability: mixers whose weights are chosen in different ways, a mixer of
/// their results, and two corrections.
class DecisionMixer {
 public:
  /// How weights and corrections are chosen for a decision.
  struct Choice {
    std::array<std::size_t, 3> sets;  ///< of each mixer; the first also of the mixer of the results
    std::array<std::size_t, 2> corrections;
  };
  /// `sets`: how many sets of weights each mixer has.
  DecisionMixer(std::size_t inputs, const std::array<std::size_t, 3>& sets);

  /// Of a 1, in [1e-5, 1 − 1e-5]. Requires: inputs and choice fit the constructor.
  double probability(std::span<const float> inputs, const Choice& choice);
  /// Learns from the decision that probability() predicted. `rate` is that of the mixers; that of their results and of
  /// the corrections is fixed. Requires: the same inputs.
  void learn(std::span<const float> inputs, bool bit, float rate);

 private:
  std::vector<LogisticMixer> mixers_;
  LogisticMixer of_results_;
  std::array<float, 3> results_{};
  std::vector<ProbabilityCorrection> corrections_;
};

class ContextMixer {
 public:
  /// `counts` are those of the tokens [id] in a text like the one to be read, from which their code is made; `expected`
  /// is about how many tokens will be read, from which the size of the tables follows: at most 151 MB. The mixers take
  /// about 17 MB and 344 bytes per token of the vocabulary, twice that with another predictor, and the text 4
  /// bytes per token. The tokenizer is not needed afterwards. Requires: it has all ids that are counted.
  ContextMixer(const Tokenizer& tokenizer, std::span<const std::int64_t> counts, std::int64_t expected);
  ContextMixer(const ContextMixer&) = delete;
  ContextMixer& operator=(const ContextMixer&) = delete;

  /// Predicts a token, then learns it. `other` is the distribution over all tokens of another predictor, or empty.
  /// Throws Error, and learns nothing, if it has another size.
  MixedLoss read(std::int32_t token, std::span<const float> other = {});
  /// The next token begins another text: contexts begin anew. What was learned stays, and so do repetitions.
  void begin_text();

 private:
  static constexpr std::size_t kContexts = 13;  // twelve by hash, and the empty one
  static constexpr std::size_t kRepeats = 2;
  static constexpr std::size_t kInputs = 3 * kContexts + kRepeats + 2;  // with a bias and the other predictor

  void hash_contexts();
  void collect(std::int32_t node);
  std::size_t confidence() const;
  DecisionMixer::Choice choose(std::int32_t node) const;
  void learn(bool bit);
  void follow(std::int32_t token);

  TokenCode code_;
  std::vector<bool> in_word_;       // whether a token begins with a character of words; " the" does not
  std::vector<bool> ends_line_;     // whether it ends in a newline
  std::vector<std::int32_t> text_;  // all that was read
  std::size_t begin_ = 0;           // of the current text
  // Hashes of the word so far, of the two words before it, and of the line so far.
  std::uint64_t word_ = 0, last_word_ = 0, second_last_word_ = 0, line_ = 0;

  std::vector<ContextTable> tables_;
  std::vector<DecisionCount> without_context_;  // by node
  std::array<HistoryMap, kContexts> histories_;
  std::vector<RepeatFinder> repeats_;
  DecisionMixer alone_;
  std::optional<DecisionMixer> with_other_;  // from the first token on that another predictor predicts, too
  BranchSums sums_;

  // The current decision.
  std::array<std::uint64_t, kContexts - 1> hashes_{};
  std::array<DecisionCount*, kContexts> counted_{};
  std::array<float, kInputs> inputs_{};
  std::int64_t decisions_ = 0;
};

}  // namespace maki
