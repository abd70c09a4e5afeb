// Learning-rate schedules as pure functions of the step s, counted from 0. Every schedule begins with a linear warmup
// over w = warmup_steps steps: lr · (s + 1) / w for s < w.
//
// Thread safety: all functions may be called on several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace maki {

/// The learning rate after the warmup. lr is the peak learning_rate, min is min_lr, and f grows linearly from 0 at step
/// w to 1 at step decay_steps.
enum class Decay : std::uint8_t {
  constant,  ///< lr forever
  linear,    ///< min + (lr − min) · (1 − f)
  /// min + (lr − min) · (1 + cos πf) / 2: Loshchilov and Hutter 2017, arXiv:1608.03983, one cycle; as in nanoGPT
  cosine,
  inverse_sqrt,  ///< max(min, lr · √(max(w, 1) / (s + 1))) forever: Vaswani et al. 2017, arXiv:1706.03762, eq. 3
  /// Warmup–stable–decay: lr until the last fifth of decay_steps, then min + (lr − min) · (1 − √f) with f from 0 to 1
  /// over that fifth. Hägele et al. 2024, arXiv:2405.18392
  wsd
};
inline constexpr std::array kDecays = {Decay::constant, Decay::linear, Decay::cosine, Decay::inverse_sqrt, Decay::wsd};
/// The name of the enumerator.
const char* to_string(Decay decay);
/// The inverse of to_string(). Throws Error, suggesting the most similar name, for any other word.
Decay decay_named(std::string_view name);

/// A schedule: a call returns the learning rate of a step. linear, cosine and wsd stay at min_lr from step decay_steps
/// on; constant and inverse_sqrt do not use decay_steps.
struct Schedule {
  Decay decay = Decay::cosine;
  double learning_rate = 1e-3;  ///< the peak
  double min_lr = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;  ///< counted from step 0, warmup included

  /// The learning rate of step s. Throws Error unless s >= 0. Requires: validate() does not throw.
  double operator()(std::int64_t s) const;
  /// Throws Error unless 0 <= min_lr <= learning_rate, both are finite, and no number of steps is negative.
  void validate() const;
};

/// A schedule that applies from step `start` on and counts its own steps from there.
struct SchedulePhase {
  std::int64_t start = 0;
  Schedule schedule;
};
/// The learning rate of step s according to the last phase with start <= s. Throws Error if s is negative, or if there
/// are no phases or the first does not start at step 0. Requires: phases are in ascending order of `start`.
double learning_rate_at(std::span<const SchedulePhase> phases, std::int64_t s);

}  // namespace maki
