// How many threads of a team are worth using while other programs want the same processors. A thread that waits for its
// processor keeps all others waiting at the end of every parallel region: beside one busy loop on two cores, a small
// step would take 1.4 times as long on two threads as on one. No result depends on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace maki {

/// Decides from the times for which the threads have waited for a processor. Pure: it reads no clock and no file.
class OtherWork {
 public:
  static constexpr std::int64_t kMaxWatched = 1024;  // threads

  /// Whether update() wants to know at time `now` (nanoseconds of any clock that does not go back) how long the threads
  /// have waited. Cheap; false in most calls.
  bool wants_update(std::int64_t now) const { return now >= next_; }
  /// waited: for each thread of the team, the nanoseconds it has waited for a processor since it began. With another
  /// number of threads than before, the time begins anew.
  /// Requires: at most kMaxWatched threads.
  void update(std::int64_t now, std::span<const std::int64_t> waited);
  /// How many threads of the team to leave out.
  std::int64_t left_out() const { return left_out_; }

 private:
  void begin(std::int64_t now, std::span<const std::int64_t> waited);

  std::int64_t next_ = 0, begun_ = 0, left_out_ = 0, pause_ = 0;
  std::size_t watched_ = 0;
  std::array<std::int64_t, kMaxWatched> waited_{};
};

/// Adds the calling thread to those whose waits active_threads() (parallel.h) looks at. Cheap after its first call.
void watch_this_thread();
/// For each watched thread that still runs, how long it has waited for a processor, in nanoseconds: the second number
/// of /proc/self/task/THREAD/schedstat on Linux. None where the system does not say it. The memory is valid until the
/// next call. Allocates nothing. Requires: one caller at a time.
std::span<const std::int64_t> waits_of_watched_threads();

}  // namespace maki
