// How long something takes: called until its time has settled, then timed call by call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace maki {

/// Seconds since some moment, on a clock that only goes forward.
double seconds_now();

/// Times of one thing, in seconds.
class Timings {
 public:
  /// At least one.
  explicit Timings(std::vector<double> seconds);

  std::int64_t count() const { return static_cast<std::int64_t>(sorted_.size()); }
  /// The time that this part of the calls stayed below, 0 to 1; between two calls, the weighted mean of both.
  double quantile(double part) const;
  double best() const { return sorted_.front(); }
  double median() const { return quantile(0.5); }
  /// The middle half of the calls is spread over more than a tenth of the median: the machine did something else, too.
  bool unsteady() const { return quantile(0.75) - quantile(0.25) > 0.1 * median(); }
  /// What to say then; empty otherwise.
  std::string caveat() const;

 private:
  std::vector<double> sorted_;
};

struct TimingPlan {
  std::int64_t calls = 0;  ///< timings to take; 0: as many as fit into `seconds`, 10 to 1000
  double seconds = 3;
};

/// Calls until three times in a row lie within 5 % of each other, or a second and three calls have passed; then
/// takes the timings. Where a call takes less than 100 microseconds, one timing is the mean of several.
Timings time_calls(const std::function<void()>& call, const TimingPlan& plan = {});

}  // namespace maki
