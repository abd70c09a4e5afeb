#include "nn/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/core/check.h"

namespace maki {

Sampler::Sampler(const Sampling& options) : options_(options) {
  check(std::isfinite(options.temperature) && options.temperature >= 0,
        "temperature: must be finite and at least 0; got {}", options.temperature);
  check(options.top_k >= 0, "top_k: must be at least 1, or 0 to keep all tokens; got {}", options.top_k);
  check(options.top_p > 0 && options.top_p <= 1, "top_p: must be in (0, 1]; got {}", options.top_p);
  check(options.min_p >= 0 && options.min_p <= 1, "min_p: must be in [0, 1]; got {}", options.min_p);
  check(std::isfinite(options.repetition_penalty) && options.repetition_penalty > 0,
        "repetition_penalty: must be finite and greater than 0; got {}", options.repetition_penalty);
  check(std::isfinite(options.frequency_penalty), "frequency_penalty: must be finite; got {}",
        options.frequency_penalty);
  check(std::isfinite(options.presence_penalty), "presence_penalty: must be finite; got {}", options.presence_penalty);
  for (const LogitBias& entry : options.logit_bias)
    check(std::isfinite(entry.bias), "logit_bias: must be finite; got {} for id {}", entry.bias, entry.id);
}

void Sampler::read(const Tensor& logits) {
  check(logits.numel() > 0, "sampler: needs at least one logit");
  candidates_.clear();
  bool possible = false, nan = false;
  dispatch(logits.dtype(), [&]<class T>() {
    std::int32_t id = 0;
    for (const T logit : logits.values<T>()) {
      nan = nan || std::isnan(logit);
      possible = possible || logit > -std::numeric_limits<T>::infinity();
      candidates_.push_back({id++, static_cast<double>(logit)});
    }
  });
  check<BadLogitsError>(!nan && possible, "sampler: the logits {}; the model has diverged, use an earlier checkpoint",
                        nan ? "contain NaN" : "are all -Inf");
}

// Bias and penalties. Candidate i still has id i.
void Sampler::change_logits(const TokenHistory& before) {
  const std::int64_t vocabulary = std::ssize(candidates_);
  for (const LogitBias& entry : options_.logit_bias) {
    check(entry.id >= 0 && entry.id < vocabulary, "logit-bias: the id must be in [0, {}); got {}", vocabulary,
          entry.id);
    candidates_[static_cast<std::size_t>(entry.id)].weight += entry.bias;
  }
  if (!options_.penalizes()) return;
  for (const auto& [id, drawn] : before.drawn()) {
    check(id >= 0 && id < vocabulary, "sampler: tokens must be in [0, {}); got {}", vocabulary, id);
    double& logit = candidates_[static_cast<std::size_t>(id)].weight;
    logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    if (drawn > 0) logit -= static_cast<double>(drawn) * options_.frequency_penalty + options_.presence_penalty;
  }
}

void Sampler::keep_top_p() {
  keep_most_likely(static_cast<std::int64_t>(candidates_.size()));
  double total = 0, reached = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  std::size_t kept = 0;
  while (kept < candidates_.size() && reached < options_.top_p * total) reached += candidates_[kept++].weight;
  candidates_.resize(std::max<std::size_t>(kept, 1));
}

std::int32_t Sampler::operator()(const Tensor& logits, std::uint64_t sample, std::uint64_t position,
                                 const TokenHistory& before) {
  read(logits);
  change_logits(before);
  const double largest = std::ranges::max_element(candidates_, {}, &Candidate::weight)->weight;
  if (options_.temperature == 0 || options_.top_k == 1) {
    return std::ranges::find(candidates_, largest, &Candidate::weight)->id;
  }
  if (options_.top_k > 0) keep_most_likely(options_.top_k);
  for (Candidate& candidate : candidates_) {
    const bool is_largest = candidate.weight == largest;  // Inf − Inf would be NaN
    candidate.weight = is_largest ? 1 : std::exp((candidate.weight - largest) / options_.temperature);
  }
  if (options_.top_p < 1) keep_top_p();
  // The weight of the most likely candidate is 1.
  if (options_.min_p > 0) std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < options_.min_p; });
  return draw(RandomStream(options_.seed, RandomPurpose::sample, sample).uniform(position));
}

// Keeps the n candidates of largest weight, in descending order; among equals, the lower id comes first.
void Sampler::keep_most_likely(std::int64_t n) {
  const auto kept = std::min(n, static_cast<std::int64_t>(candidates_.size()));
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  };
  std::ranges::partial_sort(candidates_, candidates_.begin() + kept, before);
  candidates_.resize(static_cast<std::size_t>(kept));
}

// Inverts the cumulative distribution. If rounding leaves a remainder at its end, the last candidate of non-zero weight
// is chosen.
std::int32_t Sampler::draw(double uniform) const {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double left = uniform * total;
  std::int32_t chosen = candidates_.front().id;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight == 0) continue;
    chosen = candidate.id;
    left -= candidate.weight;
    if (left < 0) break;
  }
  return chosen;
}

}  // namespace maki
