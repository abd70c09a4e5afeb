#include "data/mixing/logistic.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace maki {
namespace {

constexpr float kMaxStretched = 15;  // 1 − squash(15) is 3e-7, only five times the distance of floats just below 1
// Points of a correction: stretched probabilities −8, −7.5, … 8.
constexpr std::size_t kPoints = 33;
constexpr float kLastPoint = 8, kPointsPerUnit = 2;

}  // namespace

float stretch(float p) { return std::log(p / (1 - p)); }
float squash(float x) { return 1 / (1 + std::exp(-std::clamp(x, -kMaxStretched, kMaxStretched))); }

float stretched_fraction(std::uint16_t n) {
  static const std::vector<float> table = [] {
    std::vector<float> values(std::size_t{1} << 16);
    for (std::size_t i = 1; i < values.size(); ++i) values[i] = stretch(static_cast<float>(i) / 65536.0F);
    return values;
  }();
  return table[n];
}

LogisticMixer::LogisticMixer(std::size_t inputs, std::size_t sets, float weight)
    : inputs_(inputs), weights_(inputs * sets, weight) {}

void LogisticMixer::set_weight(std::size_t input, float weight) {
  for (std::size_t at = input; at < weights_.size(); at += inputs_) weights_[at] = weight;
}

// Four sums, in a fixed order, which hide the latency of the additions.
float LogisticMixer::mix(std::span<const float> x, std::size_t set) {
  chosen_ = set * inputs_;
  const float* const w = weights_.data() + chosen_;
  float sums[4] = {0, 0, 0, 0};
  std::size_t i = 0;
  for (; i + 4 <= inputs_; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += w[i + k] * x[i + k];
  }
  for (; i < inputs_; ++i) sums[0] += w[i] * x[i];
  mixed_ = std::clamp((sums[0] + sums[1]) + (sums[2] + sums[3]), -kMaxStretched, kMaxStretched);
  return mixed_;
}

void LogisticMixer::learn(std::span<const float> x, bool bit, float rate) {
  const float step = rate * ((bit ? 1.0F : 0.0F) - squash(mixed_));
  float* const w = weights_.data() + chosen_;
  for (std::size_t i = 0; i < inputs_; ++i) w[i] += step * x[i];
}

ProbabilityCorrection::ProbabilityCorrection(std::size_t contexts) {
  std::array<float, kPoints> first;
  for (std::size_t i = 0; i < kPoints; ++i) first[i] = squash(static_cast<float>(i) / kPointsPerUnit - kLastPoint);
  points_.reserve(contexts * kPoints);
  for (std::size_t i = 0; i < contexts; ++i) points_.insert(points_.end(), first.begin(), first.end());
}

void ProbabilityCorrection::prefetch(std::size_t context) const {
  constexpr std::size_t kOfLine = 16;  // floats of a line of the cache
  for (std::size_t i = 0; i < kPoints; i += kOfLine) __builtin_prefetch(&points_[context * kPoints + i]);
}

float ProbabilityCorrection::correct(float x, std::size_t context) {
  constexpr float kInside = 0.999F;  // so that the point to the right exists
  const float at = (std::clamp(x, -kLastPoint * kInside, kLastPoint * kInside) + kLastPoint) * kPointsPerUnit;
  const float floor = std::floor(at);
  left_ = context * kPoints + static_cast<std::size_t>(floor);
  share_ = at - floor;
  return points_[left_] * (1 - share_) + points_[left_ + 1] * share_;
}

void ProbabilityCorrection::learn(bool bit, float rate) {
  const float target = bit ? 1 : 0;
  points_[left_] += (target - points_[left_]) * rate * (1 - share_);
  points_[left_ + 1] += (target - points_[left_ + 1]) * rate * share_;
}

}  // namespace maki
