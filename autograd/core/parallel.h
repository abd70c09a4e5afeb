// Parallel loops. The one rule: results are bit-identical for any number of threads. Loops are partitioned over their
// outputs; a reduction works on blocks of a fixed size whose partial results are combined in index order. All parallel
// regions of the process use the same team size.
//
// Requires: the body of a parallel loop must not throw; an exception that leaves an OpenMP region ends the program.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <omp.h>

#include "autograd/core/other_work.h"

namespace maki {

/// The team size that every parallel region asks for. Initially OMP_NUM_THREADS or, if that is not set, the number of
/// processors that this process may run on, 1024 at most. Throws Error, until set_threads(), if the variable is above.
///
/// Thread safety: may be called from any thread.
int threads();
/// Sets the team size. Throws Error unless 1 <= n <= 1024.
///
/// Thread safety: the value is atomic, but no op may run at the same time: sizes of scratch memory depend on it.
void set_threads(std::int64_t n);

/// The number of threads that the next parallel region should use, at most threads(): fewer while other programs use
/// the processors of some (other_work.h). 1 inside a parallel region.
///
/// Thread safety: may be called from any thread.
int active_threads();

/// While it lives, active_threads() is threads(): for measurements of the machine.
///
/// Thread safety: may be made by several threads at a time.
class WholeTeam {
 public:
  WholeTeam();
  ~WholeTeam();
  WholeTeam(const WholeTeam&) = delete;
  WholeTeam& operator=(const WholeTeam&) = delete;
};

/// An elementary operation is about one addition or multiplication of one element in a vectorised loop; an exponential
/// counts as 8. The counts are rough. Loops of fewer elementary operations than this (about 5 µs on one core) run
/// serially, because a parallel region would cost more than it saves.
inline constexpr std::int64_t kMinParallelWork = 32768;

/// The number of threads for a loop over n indices, each of which costs `work` elementary operations: 1 if there is too
/// little work or the caller is already in a parallel region.
inline int team_for(std::int64_t n, std::int64_t work) {
  return n <= 1 || n * std::max<std::int64_t>(work, 1) < kMinParallelWork ? 1 : active_threads();
}

/// Calls body(thread) on each of `team` threads: every parallel region of the process.
template <class Body>
void run_on_team(int team, const Body& body) {
#pragma omp parallel num_threads(team)
  {
    watch_this_thread();
    body(omp_get_thread_num());
  }
}

/// Calls body(begin, end) on contiguous parts of [0, n), at most one per thread, and not at all for n <= 0. `work` is
/// the cost of one index in elementary operations. Where the parts begin and end depends on the number of threads, so
/// the body must process each index independently of the others. Serial if there is too little work or the caller is
/// already in a parallel region.
template <class Body>
void parallel_ranges(std::int64_t n, std::int64_t work, const Body& body) {
  const int team = team_for(n, work);
  if (team == 1) {
    if (n > 0) body(std::int64_t{0}, n);
    return;
  }
  run_on_team(team, [&](std::int64_t part) {
    const std::int64_t parts = omp_get_num_threads();
    const std::int64_t begin = n * part / parts, end = n * (part + 1) / parts;
    if (begin < end) body(begin, end);
  });
}

/// Distributes tasks 0 … n - 1 over a team: each thread first runs its own contiguous part, then takes tasks that other
/// threads have not begun. The parts are those of parallel_ranges(), so that consecutive ops find a row in the cache of
/// the core that wrote it: reading 0.4 MB that the other of two cores has just written takes 18 µs, reading one's own
/// data 6 µs. Taking over tasks keeps the threads together when a core is preempted or tasks differ in size.
class TaskQueue {
 public:
  TaskQueue() = default;
  TaskQueue(std::int64_t n, int team) { reset(n, team); }

  /// Requires: no thread is in run().
  void reset(std::int64_t n, int team) {
    parts_ = std::min<std::int64_t>(team, kMaxParts);
    for (std::int64_t p = 0; p < parts_; ++p) {
      Part& part = part_[static_cast<std::size_t>(p)];
      part.next.store(n * p / parts_, std::memory_order_relaxed);
      part.end = n * (p + 1) / parts_;
    }
  }

  /// Calls body(i) for the tasks of this thread's part and then for tasks of the other parts that are still unclaimed.
  ///
  /// Thread safety: called concurrently by all threads of the team, each with its own number.
  template <class Body>
  void run(int thread, const Body& body) {
    for (std::int64_t p = 0; p < parts_; ++p) {
      Part& part = part_[static_cast<std::size_t>((thread + p) % parts_)];
      while (true) {
        const std::int64_t i = part.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= part.end) break;
        body(i);
      }
    }
  }

 private:
  static constexpr std::int64_t kMaxParts = 64;  // 4 KiB of counters; in larger teams, several threads share a part
  struct alignas(64) Part {
    std::atomic<std::int64_t> next = 0;
    std::int64_t end = 0;
  };
  std::int64_t parts_ = 0;
  std::array<Part, kMaxParts> part_;
};

/// An upper bound on the number of distinct worker indices that parallel_for() over [0, n) passes to its body if it is
/// called in the same context: the number of scratch areas to allocate.
inline std::int64_t workers(std::int64_t n) {
  return omp_in_parallel() ? std::min<std::int64_t>(n, 1) : std::min<std::int64_t>(n, threads());
}

/// Calls body(i) or body(i, worker) once for every i in [0, n), for bodies that each do a whole block of work. `work`
/// is the cost of one call in elementary operations. 0 <= worker < workers(n), and concurrent calls have different
/// workers, so `worker` can index per-thread scratch. omp_get_thread_num() cannot: if the caller is already in a
/// parallel region, the loop runs serially, and that function still returns the thread's number in the caller's team.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t work, const Body& body) {
  const auto call = [&](std::int64_t i, std::int64_t worker) {
    if constexpr (std::invocable<const Body&, std::int64_t, std::int64_t>) {
      body(i, worker);
    } else {
      body(i);
    }
  };
  const int team = team_for(n, work);
  if (team == 1) {
    for (std::int64_t i = 0; i < n; ++i) call(i, 0);
    return;
  }
  TaskQueue queue(n, team);
  run_on_team(team, [&](int thread) { queue.run(thread, [&](std::int64_t i) { call(i, n < team ? i : thread); }); });
}

/// ceil(a / b) for a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace maki
