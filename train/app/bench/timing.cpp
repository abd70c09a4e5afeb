#include "train/app/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "data/io/number.h"

namespace maki {
namespace {

constexpr double kMinTimedSeconds = 1e-4;  // shorter calls are repeated, because reading the clock takes some 50 ns
constexpr double kMaxWarmUpSeconds = 1;    // for times that do not settle
// If their number depends on how long they take: enough for a median, and no more than it needs.
constexpr std::int64_t kMinTimings = 10, kMaxTimings = 1000;

// Seconds per call, the mean of `repeats` calls.
double time_once(const std::function<void()>& call, std::int64_t repeats) {
  const double start = seconds_now();
  for (std::int64_t i = 0; i < repeats; ++i) call();
  return (seconds_now() - start) / static_cast<double>(repeats);
}

bool settled(const std::vector<double>& times) {
  if (times.size() < 3) return false;
  const auto [low, high] = std::minmax_element(times.end() - 3, times.end());
  return *high <= 1.05 * *low;
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Timings::Timings(std::vector<double> seconds) : sorted_(std::move(seconds)) {
  check(!sorted_.empty(), "timings: at least one time is needed");
  std::ranges::sort(sorted_);
}

double Timings::quantile(double part) const {
  const double place = part * static_cast<double>(sorted_.size() - 1);
  const auto below = static_cast<std::size_t>(place), above = std::min(below + 1, sorted_.size() - 1);
  return std::lerp(sorted_[below], sorted_[above], place - std::floor(place));
}

std::string Timings::noise_warning() const {
  if (!is_noisy()) return "";
  return fmt::format(
      "warning: the middle half of the times lies between {} and {}: the machine was busy with other work; "
      "measure again when it is idle",
      milliseconds_text(quantile(0.25)), milliseconds_text(quantile(0.75)));
}

Timings measure_calls(const std::function<void()>& call, const TimingOptions& plan) {
  check(plan.calls >= 0 && plan.calls <= 1'000'000,
        "steps: must be between 1 and 1000000, or 0 to choose by time; got {}", plan.calls);
  const double start = seconds_now();
  std::vector<double> times;
  std::int64_t repeats = 1;
  while (times.size() < 3 || (!settled(times) && seconds_now() - start < kMaxWarmUpSeconds)) {
    times.push_back(time_once(call, repeats));
    if (times.back() * static_cast<double>(repeats) < kMinTimedSeconds) {
      repeats *= 2;
      times.clear();
    }
  }
  const double fit = plan.seconds / (times.back() * static_cast<double>(repeats));
  const std::int64_t calls = plan.calls > 0
                                 ? plan.calls
                                 : static_cast<std::int64_t>(std::clamp(fit, double{kMinTimings}, double{kMaxTimings}));
  times.clear();
  for (std::int64_t i = 0; i < calls; ++i) times.push_back(time_once(call, repeats));
  return Timings(std::move(times));
}

}  // namespace maki
