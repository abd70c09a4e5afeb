// From what many contexts say about a decision to one probability.
//
// Thread safety: none; objects are used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/mixing/logistic.h"

namespace maki {

/// Mixers whose weights are chosen in different ways; mixers of their results, whose mean is taken; and two
/// corrections.
class DecisionMixer {
 public:
  static constexpr std::size_t kMixers = 6, kCorrections = 2;  ///< each with a choice of its own
  static constexpr std::size_t kCorrectionContexts = 1 << 16;  ///< of each correction, by hash: 8.7 MB

  /// How weights and corrections are chosen for a decision.
  struct Choice {
    std::array<std::size_t, kMixers> sets;
    std::array<std::size_t, kCorrections> corrections;
  };
  /// How fast the mixers and the mixers of their results learn.
  struct Rates {
    float mixers, results;
  };
  /// `sets`: how many sets of weights each mixer has.
  DecisionMixer(std::size_t inputs, const std::array<std::size_t, kMixers>& sets);

  /// Sets the weight of an input in all sets of the mixers.
  void set_weight(std::size_t input, float weight);
  /// Of a 1, in [1e-5, 1 − 1e-5]. Requires: inputs and choice fit the constructor.
  double probability(std::span<const float> inputs, const Choice& choice);
  /// Learns from the decision that probability() predicted. The rate of the corrections is fixed. Requires: the same
  /// inputs.
  void learn(std::span<const float> inputs, bool bit, const Rates& rates);

 private:
  std::vector<LogisticMixer> mixers_, of_results_;
  std::array<float, kMixers> results_{};
  std::vector<ProbabilityCorrection> corrections_;
};

/// A probability within the bounds of DecisionMixer::probability().
float clamp_probability(double p);

}  // namespace maki
