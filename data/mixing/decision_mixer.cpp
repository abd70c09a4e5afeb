#include "data/mixing/decision_mixer.h"

#include <algorithm>

namespace maki {
namespace {

// Chosen by measurement, as those of ContextMixer: "What is counted and mixed" in docs/learning.md.
constexpr float kFirstSumOfWeights = 6.5F;  // of a mixer; above 1, because inputs that agree confirm each other
constexpr float kCorrectionRate = 0.02F;    // the share of its error by which a correction changes
constexpr float kMinProbability = 1e-5F;    // of either result: no decision costs more than 11.5 nats
// Which mixers' sets choose the weights of the mixers of results.
constexpr std::size_t kChoosers[] = {0, 1, 4, 5};

}  // namespace

float clamp_probability(double p) {
  return static_cast<float>(std::clamp(p, static_cast<double>(kMinProbability), 1.0 - kMinProbability));
}

DecisionMixer::DecisionMixer(std::size_t inputs, const std::array<std::size_t, kMixers>& sets)
    : corrections_(kCorrections, ProbabilityCorrection(kCorrectionContexts)) {
  for (const std::size_t n : sets) mixers_.emplace_back(inputs, n, kFirstSumOfWeights / static_cast<float>(inputs));
  for (const std::size_t chooser : kChoosers) of_results_.emplace_back(kMixers, sets[chooser], 1.0F / kMixers);
}

void DecisionMixer::set_weight(std::size_t input, float weight) {
  for (LogisticMixer& mixer : mixers_) mixer.set_weight(input, weight);
}

// The mixers and both corrections have about equal shares in the result.
double DecisionMixer::probability(std::span<const float> inputs, const Choice& choice) {
  for (std::size_t i = 0; i < kCorrections; ++i) corrections_[i].prefetch(choice.corrections[i]);
  for (std::size_t i = 0; i < kMixers; ++i) results_[i] = mixers_[i].mix(inputs, choice.sets[i]);
  float sum = 0;
  for (std::size_t i = 0; i < of_results_.size(); ++i) sum += of_results_[i].mix(results_, choice.sets[kChoosers[i]]);
  const float mixed = sum / static_cast<float>(of_results_.size());
  const float first = corrections_[0].correct(mixed, choice.corrections[0]);
  const float second = corrections_[1].correct(mixed, choice.corrections[1]);
  return clamp_probability(0.4F * squash(mixed) + 0.3F * first + 0.3F * second);
}

void DecisionMixer::learn(std::span<const float> inputs, bool bit, const Rates& rates) {
  for (LogisticMixer& mixer : mixers_) mixer.learn(inputs, bit, rates.mixers);
  for (LogisticMixer& mixer : of_results_) mixer.learn(results_, bit, rates.results);
  for (ProbabilityCorrection& correction : corrections_) correction.learn(bit, kCorrectionRate);
}

}  // namespace maki
