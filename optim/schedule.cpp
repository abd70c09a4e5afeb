#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <iterator>
#include <numbers>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"

namespace maki {

const char* to_string(Decay decay) {
  switch (decay) {
    case Decay::constant:
      return "constant";
    case Decay::linear:
      return "linear";
    case Decay::cosine:
      return "cosine";
    case Decay::inverse_sqrt:
      return "inverse_sqrt";
    case Decay::wsd:
      return "wsd";
  }
  return "";
}

Decay decay_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Decay decay : kDecays) {
    if (name == to_string(decay)) return decay;
    names.emplace_back(to_string(decay));
  }
  fail("schedule: must be one of {}; got {}{}", fmt::join(names, ", "), name, nearest_hint(name, names));
}

void Schedule::validate() const {
  check(std::isfinite(learning_rate) && learning_rate >= 0,
        "schedule: learning_rate must be finite and not negative; got {}", learning_rate);
  check(min_lr >= 0 && min_lr <= learning_rate, "schedule: min_lr must be between 0 and learning_rate {}; got {}",
        learning_rate, min_lr);
  check(warmup_steps >= 0 && decay_steps >= 0,
        "schedule: numbers of steps must not be negative; got warmup_steps {}, decay_steps {}", warmup_steps,
        decay_steps);
}

double Schedule::operator()(std::int64_t s) const {
  check(s >= 0, "schedule: the step must not be negative; got {}", s);
  const auto step = static_cast<double>(s), warmup = static_cast<double>(warmup_steps);
  if (s < warmup_steps) return learning_rate * (step + 1) / warmup;
  if (decay == Decay::constant) return learning_rate;
  if (decay == Decay::inverse_sqrt) {
    return std::max(min_lr, learning_rate * std::sqrt(std::max(1.0, warmup) / (step + 1)));
  }
  if (s >= decay_steps) return min_lr;

  // The decay begins after the warmup; that of wsd not before the last fifth of decay_steps.
  const std::int64_t stable = decay == Decay::wsd ? decay_steps - decay_steps / 5 : 0;
  const std::int64_t begin = std::max(warmup_steps, stable);
  if (s < begin) return learning_rate;
  const double f = (step - static_cast<double>(begin)) / static_cast<double>(decay_steps - begin);
  const double left = decay == Decay::linear   ? 1 - f
                      : decay == Decay::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * f))
                                               : 1 - std::sqrt(f);
  return min_lr + (learning_rate - min_lr) * left;
}

double learning_rate_at(std::span<const SchedulePhase> phases, std::int64_t s) {
  check(!phases.empty() && phases.front().start == 0 && s >= 0,
        "schedule: the first phase must start at step 0, and the step must not be negative; got step {}", s);
  const auto next = std::ranges::upper_bound(phases, s, {}, &SchedulePhase::start);
  const SchedulePhase& phase = *std::prev(next);
  return phase.schedule(s - phase.start);
}

}  // namespace maki
