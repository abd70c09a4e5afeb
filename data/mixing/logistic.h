// Logistic mixing: several probabilities of the same binary decision become one. Mahoney 2005, "Adaptive weighing of
// context models for lossless data compression" (PAQ); Mattern 2012, "Mixing strategies in data compression".
//
// Thread safety: none; objects are used by one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace maki {

/// ln(p / (1 − p)), the domain in which probabilities are mixed. Requires: 0 < p < 1.
float stretch(float p);
/// The inverse, 1 / (1 + exp(−x)), of x clamped to [−15, 15].
float squash(float x);
/// stretch(n / 65536), from a table. Requires: n > 0.
float stretched_fraction(std::uint16_t n);

/// p = squash(w · x) with a weight vector w of each set, which learns while it is used: after each decision
/// w ← w + rate · (bit − p) · x, a step down the gradient of −ln p(bit).
class LogisticMixer {
 public:
  /// All weights are `weight` at first.
  LogisticMixer(std::size_t inputs, std::size_t sets, float weight);
  /// Sets the weight of an input in all sets. Requires: input < inputs.
  void set_weight(std::size_t input, float weight);

  /// Mixes stretched probabilities with the weights of a set; the result is stretched, and in [−15, 15]. Requires: as
  /// many inputs as the mixer has, set < sets.
  float mix(std::span<const float> x, std::size_t set);
  /// Learns from the decision that mix() predicted. Requires: the same inputs.
  void learn(std::span<const float> x, bool bit, float rate);

 private:
  std::size_t inputs_, chosen_ = 0;
  float mixed_ = 0;
  std::vector<float> weights_;
};

/// A map from a probability, in a context, to the frequency with which a 1 then followed: corrects predictions that are
/// systematically too sure or too timid. Linear interpolation between points in the stretched domain, from −8 to 8;
/// what is beyond them counts as the nearer end.
class ProbabilityCorrection {
 public:
  /// At first correct(x) is squash(x), up to the interpolation, in each of `contexts` contexts.
  explicit ProbabilityCorrection(std::size_t contexts);

  /// Begins to read the memory of a context, for correct().
  void prefetch(std::size_t context) const;
  /// The probability that a 1 follows, if `x` is predicted (stretched). Requires: context < contexts.
  float correct(float x, std::size_t context);
  /// Learns from the decision that correct() was asked for last.
  void learn(bool bit, float rate);

 private:
  std::vector<float> points_;
  std::size_t left_ = 0;
  float share_ = 0;  // of the point to the right
};

}  // namespace maki
