// A predictor of text that learns with every token it reads: counts in many contexts at once, mixed by weights that are
// learnt as well. This is what the compressors of the PAQ family do (Mahoney 2005), on tokens instead of bytes, and the
// strongest thing that can be had without a network.
//
// Each token is a few binary decisions (TokenCode). For each of them, every context (TextContexts) gives two
// probabilities: how often a 1 followed here, and how often it followed such a history of zeros and ones anywhere.
// Logistic mixers, whose weights are chosen by different contexts, combine them; two corrections by context follow
// (DecisionMixer). A network may take part: its probability is one more input of a second set of mixers, which begin
// with the weights of the first.
//
// Thread safety: none; objects are used by one thread at a time. No result depends on a number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/mixing/context_table.h"
#include "data/mixing/decision_mixer.h"
#include "data/mixing/probable_nodes.h"
#include "data/mixing/repeat_finder.h"
#include "data/mixing/text_contexts.h"
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
  /// What a mixer is for. To predict while it learns, it also looks for repetitions and recalls what followed; where it
  /// only predicts, this brings nothing (docs/decisions/085-counts-that-teach.md).
  enum class Use : std::uint8_t { learn_while_predicting, learn_then_predict };

  /// `counts` are those of the tokens [id] in a text like the one to be read, from which their code is made; `expected`
  /// is about how many tokens will be learned, from which the size of the tables follows: at most 353 MB. The mixers
  /// take about 19 MB and 640 bytes per token of the vocabulary, twice that with another predictor, what followed two
  /// tokens takes 8 MB, and the text 4 bytes per token. The tokenizer is not needed afterwards. Requires: it has all
  /// ids that are counted.
  ContextMixer(const Tokenizer& tokenizer, std::span<const std::int64_t> counts, std::int64_t expected,
               Use use = Use::learn_while_predicting);
  ContextMixer(const ContextMixer&) = delete;
  ContextMixer& operator=(const ContextMixer&) = delete;

  /// Predicts a token, then learns it. `other` is the distribution over all tokens of another predictor, or empty.
  /// Throws Error, and learns nothing, if it has another size.
  MixedLoss read(std::int32_t token, std::span<const float> other = {});
  /// Adds what is expected next: the probability of each decision, in the order of visit_probable_nodes(). Learns
  /// nothing. Requires: Use::learn_then_predict.
  void expect(std::vector<DecisionProbability>& probabilities);
  /// Reads a token without learning it. Requires: Use::learn_then_predict.
  void follow(std::int32_t token) { contexts_.follow(token); }
  /// The next token begins another text: contexts begin anew. What was learned stays, and so do repetitions.
  void begin_text() { contexts_.begin_text(); }

 private:
  static constexpr std::size_t kContexts = TextContexts::kContexts + 1;  // with the empty one
  static constexpr std::size_t kRepeats = 2;                             // finders: kRepeatLengths
  static constexpr std::size_t kInputs = 3 * kContexts + kRepeats + 2;   // with a bias and the other predictor

  // Where a group of decisions is counted, in each context but the empty one. Places are computed ahead, because most
  // of the time is spent on waiting for their memory.
  using Places = std::array<ContextTable::Place, TextContexts::kContexts>;
  using Contexts = std::uint32_t;  // a set of them, one bit each
  static constexpr Contexts kAllContexts = (Contexts{1} << TextContexts::kContexts) - 1;
  Places places(std::int32_t node, Contexts wanted = kAllContexts) const;
  void find(std::int32_t node, const Places& at);
  Contexts look_up(std::int32_t node, const Places& at, Contexts searched);
  void collect();
  std::size_t longest_repetition() const;
  std::size_t confidence() const;
  std::size_t certainties() const;
  DecisionMixer::Choice choose(std::int32_t node) const;
  void learn(bool bit);

  TokenCode code_;
  TextContexts contexts_;
  std::vector<std::int32_t> text_;  // all that was read

  std::vector<ContextTable> tables_;
  std::vector<DecisionCount> without_context_;  // by node
  std::array<HistoryMap, kContexts> histories_;
  std::vector<RepeatFinder> repeats_;
  DecisionMixer alone_;
  std::optional<DecisionMixer> with_other_;  // from the first token on that another predictor predicts, too
  BranchSums sums_;

  // The current decision.
  TextContexts::Hashes hashes_{};
  std::array<const DecisionCount*, kContexts> counted_{};
  std::array<DecisionCount*, kContexts> learned_{};  // of a decision that will be learned
  std::array<float, kInputs> inputs_{};
  std::int64_t decisions_ = 0;
  // Of expect(), by node: the contexts in which it may have been seen, and where its group is counted, an index of
  // places_.
  struct Expected {
    Contexts contexts;
    std::uint32_t at;
  };
  std::vector<Expected> expected_;
  std::vector<Places> places_;
};

}  // namespace maki
