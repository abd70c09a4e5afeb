// Timing of repeated calls: first a warm-up until the times have settled, then the timings that count.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace maki {

/// Seconds since an arbitrary moment, on a monotonic clock.
double seconds_now();

/// The timings of one operation, in seconds.
class Timings {
 public:
  /// Throws Error if there are none.
  explicit Timings(std::vector<double> seconds);

  std::int64_t count() const { return static_cast<std::int64_t>(sorted_.size()); }
  /// The quantile `part` of the times, from 0 (the shortest) to 1, interpolated linearly between neighbours. Requires:
  /// 0 <= part <= 1.
  double quantile(double part) const;
  double best() const { return sorted_.front(); }
  double median() const { return quantile(0.5); }
  /// Whether the interquartile range of the times exceeds a tenth of the median: the machine was busy with other work.
  bool is_noisy() const { return quantile(0.75) - quantile(0.25) > 0.1 * median(); }
  /// The warning for is_noisy() times; empty otherwise.
  std::string noise_warning() const;

 private:
  std::vector<double> sorted_;
};

struct TimingOptions {
  std::int64_t calls = 0;  ///< timings to take; 0: as many as fit into `seconds`, from 10 to 1000
  double seconds = 3;      ///< after the warm-up; not used unless calls is 0
};

/// Calls until three consecutive times lie within 5 % of each other, or a second has passed and three times were taken;
/// then takes the timings. If a call takes less than 100 microseconds, each time is the mean of several calls. Throws
/// Error unless plan.calls is between 0 and 1,000,000, and whatever `call` throws.
Timings measure_calls(const std::function<void()>& call, const TimingOptions& plan = {});

}  // namespace maki
