#include "optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/ranges.h>
#include <iterator>
#include <numbers>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"

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

struct Row {
  LrDecay decay;
  const char* name;
  bool ends;
  double (*rate)(const LrSchedule&, std::int64_t s);  // after the warm-up
};
constexpr std::array kTable = {
    Row{LrDecay::cosine, "cosine", true, cosine},
    Row{LrDecay::linear, "linear", true, linear},
    Row{LrDecay::constant, "constant", false, constant},
    Row{LrDecay::inverse_sqrt, "inverse_sqrt", false, inverse_sqrt},
    Row{LrDecay::wsd, "wsd", true, wsd},
};
constexpr bool in_order_of_enumerators() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].decay) != i) return false;
  }
  return true;
}
static_assert(in_order_of_enumerators());

const Row& row(LrDecay decay) { return kTable.at(static_cast<std::size_t>(decay)); }

}  // namespace

std::vector<LrDecay> lr_decays() {
  std::vector<LrDecay> decays;
  for (const Row& row : kTable) decays.push_back(row.decay);
  return decays;
}

std::vector<std::string> lr_decay_names() {
  std::vector<std::string> names;
  for (const Row& row : kTable) names.emplace_back(row.name);
  return names;
}

const char* to_string(LrDecay decay) { return row(decay).name; }
bool lr_decay_ends(LrDecay decay) { return row(decay).ends; }

LrDecay parse_lr_decay(std::string_view name) {
  for (const Row& row : kTable) {
    if (name == row.name) return row.decay;
  }
  const std::vector<std::string> names = lr_decay_names();
  fail("schedule: must be one of {}; got {}{}", fmt::join(names, ", "), name, nearest_hint(name, names));
}

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
  if (s >= warmup_steps) return row(decay).rate(*this, s);
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
