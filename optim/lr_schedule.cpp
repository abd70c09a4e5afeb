#include "optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>

#include "autograd/core/check.h"
#include "autograd/core/table.h"

namespace maki {
namespace {

// Falls from the peak at step `begin` to min_lr at step decay_steps, and stays there. `left` is the part of the way
// that is left when the part f has passed.
double falling(const LrSchedule& c, std::int64_t s, std::int64_t begin, double (*left)(double f)) {
  if (s >= c.decay_steps) return c.min_lr;
  if (s < begin) return c.learning_rate;
  const double f = static_cast<double>(s - begin) / static_cast<double>(c.decay_steps - begin);
  return c.min_lr + (c.learning_rate - c.min_lr) * left(f);
}

double cosine(const LrSchedule& c, std::int64_t s) {
  return falling(c, s, c.warmup_steps, [](double f) { return 0.5 * (1 + std::cos(std::numbers::pi * f)); });
}
double linear(const LrSchedule& c, std::int64_t s) {
  return falling(c, s, c.warmup_steps, [](double f) { return 1 - f; });
}
double constant(const LrSchedule& c, std::int64_t /*s*/) { return c.learning_rate; }
double inverse_sqrt(const LrSchedule& c, std::int64_t s) {
  const double warmup = std::max(1.0, static_cast<double>(c.warmup_steps));
  return std::max(c.min_lr, c.learning_rate * std::sqrt(warmup / (static_cast<double>(s) + 1)));
}
double wsd(const LrSchedule& c, std::int64_t s) {
  const std::int64_t stable = c.decay_steps - c.decay_steps / 5;
  return falling(c, s, std::max(c.warmup_steps, stable), [](double f) { return 1 - std::sqrt(f); });
}

// The order of the rows is that of the help.
constexpr LrDecay kDecays[] = {
    {"cosine",
     "min_lr + (learning_rate − min_lr) · (1 + cos πf) / 2, where f grows linearly from 0 at the end of the "
     "warmup to 1 at decay_steps. Loshchilov and Hutter 2017, arXiv:1608.03983, one cycle; as in nanoGPT",
     true, cosine},
    {"linear", "min_lr + (learning_rate − min_lr) · (1 − f), with f as for cosine", true, linear},
    {"constant", "learning_rate forever", false, constant, true},
    {"inverse_sqrt",
     "learning_rate · √(w / (s + 1)) at step s, but at least min_lr, where w is warmup_steps, or 1 if there is "
     "no warmup. Vaswani et al. 2017, arXiv:1706.03762, section 5.3, scaled to learning_rate at its peak",
     false, inverse_sqrt},
    {"wsd",
     "warmup–stable–decay: learning_rate until the last fifth of decay_steps, then min_lr + (learning_rate − "
     "min_lr) · (1 − √f), where f grows linearly from 0 to 1 over that fifth. Hägele et al. 2024, "
     "arXiv:2405.18392",
     true, wsd},
};
constexpr Table kLrDecays("schedule", kDecays);

}  // namespace

std::span<const LrDecay> lr_decays() { return kDecays; }

std::vector<std::string> lr_decay_names() { return kLrDecays.names(); }

const LrDecay* lr_decay_named(std::string_view name) { return &kLrDecays.row(name); }

void LrSchedule::validate() const {
  check(std::isfinite(learning_rate) && learning_rate >= 0,
        "schedule: learning_rate must be finite and not negative; got {}", learning_rate);
  check(min_lr >= 0 && min_lr <= learning_rate, "schedule: min_lr must be between 0 and learning_rate {}; got {}",
        learning_rate, min_lr);
  check(warmup_steps >= 0 && decay_steps >= 0,
        "schedule: numbers of steps must not be negative; got warmup_steps {}, decay_steps {}", warmup_steps,
        decay_steps);
}

double LrSchedule::operator()(std::int64_t s) const {
  check(s >= 0, "schedule: the step must not be negative; got {}", s);
  if (s >= warmup_steps) return decay->rate(*this, s);
  return learning_rate * (static_cast<double>(s) + 1) / static_cast<double>(warmup_steps);
}

double learning_rate_at(std::span<const LrPhase> phases, std::int64_t s) {
  check(!phases.empty() && phases.front().start == 0 && s >= 0,
        "schedule: the first phase must start at step 0, and the step must not be negative; got step {}", s);
  const auto next = std::ranges::upper_bound(phases, s, {}, &LrPhase::start);
  const LrPhase& phase = *std::prev(next);
  return phase.schedule(s - phase.start);
}

}  // namespace maki
