// Learning rates as pure functions of the step. Every shape begins with a linear warmup: lr · (s + 1) / w while s < w.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace maki {

/// How the learning rate goes on after the warmup. f runs from 0 at step w to 1 at step decay_steps; lr and min are the
/// peak and min_lr.
enum class Decay : std::uint8_t {
  constant,  ///< lr, for ever
  linear,    ///< min + (lr − min) · (1 − f)
  cosine,  ///< min + (lr − min) · (1 + cos πf) / 2: Loshchilov and Hutter 2017, arXiv:1608.03983, one cycle; nanoGPT
  inverse_sqrt,  ///< max(min, lr · √(w / (s + 1))), for ever: Vaswani et al. 2017, arXiv:1706.03762, eq. 3
  wsd  ///< lr up to the last fifth of decay_steps, there 1 − √ down to min: Hägele et al. 2024, arXiv:2405.18392
};
inline constexpr std::array kDecays = {Decay::constant, Decay::linear, Decay::cosine, Decay::inverse_sqrt, Decay::wsd};
const char* to_string(Decay decay);
/// Throws, naming the nearest, for another word.
Decay decay_named(std::string_view name);

/// The learning rate of step s, counted from 0. linear, cosine and wsd stay at min_lr from step decay_steps on;
/// constant and inverse_sqrt know no horizon.
struct Schedule {
  Decay decay = Decay::cosine;
  double learning_rate = 1e-3;  ///< the peak
  double min_lr = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  ///< the horizon, counted from step 0

  /// Throws unless s >= 0.
  double operator()(std::int64_t s) const;
  /// Throws, naming the rule: rates finite, 0 <= min_lr <= learning_rate, no negative number of steps.
  void validate() const;
};

/// A schedule that takes over at a step; its own steps count from there.
struct SchedulePhase {
  std::int64_t start = 0;
  Schedule schedule;
};
/// The learning rate of step s under the last phase that has begun. Phases are in ascending order, the first at step 0.
double learning_rate_at(std::span<const SchedulePhase> phases, std::int64_t s);

}  // namespace maki
