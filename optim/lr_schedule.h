// Learning-rate schedules as pure functions of the step s, counted from 0. Every schedule begins with a linear warmup
// over w = warmup_steps steps: lr · (s + 1) / w for s < w. To add a schedule, add an enumerator here and its row to the
// table in lr_schedule.cpp; the configuration and its help read that table.
//
// Thread safety: all functions may be called on several threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maki {

/// The learning rate after the warmup. lr is the peak learning_rate, min is min_lr, and f grows linearly from 0 at
/// step w to 1 at step decay_steps.
enum class LrDecay : std::uint8_t {
  /// min + (lr − min) · (1 + cos πf) / 2: Loshchilov and Hutter 2017, arXiv:1608.03983, one cycle; as in nanoGPT
  cosine,
  linear,        ///< min + (lr − min) · (1 − f)
  constant,      ///< lr forever
  inverse_sqrt,  ///< max(min, lr · √(max(w, 1) / (s + 1))) forever: Vaswani et al. 2017, arXiv:1706.03762, eq. 3
  /// Warmup–stable–decay: lr until the last fifth of decay_steps, then min + (lr − min) · (1 − √f) with f from 0 to 1
  /// over that fifth. Hägele et al. 2024, arXiv:2405.18392
  wsd
};

/// All decays, in the order of the enumerators.
std::vector<LrDecay> lr_decays();
/// Their names, in the same order.
std::vector<std::string> lr_decay_names();
/// The name of the enumerator.
const char* to_string(LrDecay decay);
/// The inverse of to_string(). Throws Error, suggesting the most similar name, for any other word.
LrDecay parse_lr_decay(std::string_view name);
/// Whether the learning rate stays at min_lr from step decay_steps on. The other decays do not use decay_steps.
bool lr_decay_ends(LrDecay decay);

/// A schedule: a call returns the learning rate of a step.
struct LrSchedule {
  LrDecay decay = LrDecay::cosine;
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
struct LrPhase {
  std::int64_t start = 0;
  LrSchedule schedule;
};
/// The learning rate of step s according to the last phase with start <= s. Throws Error if s is negative, or if there
/// are no phases or the first does not start at step 0. Requires: phases are in ascending order of `start`.
double learning_rate_at(std::span<const LrPhase> phases, std::int64_t s);

}  // namespace maki
