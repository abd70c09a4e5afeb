// Parallel loops. The one rule: bits never depend on the number of threads. A loop is shared out over outputs; a
// reduction works on blocks of a fixed size whose partial results are combined in index order. One team size serves the
// whole run.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <omp.h>

namespace maki {

/// The team size of every parallel region. At start: OMP_NUM_THREADS, else the processors this process may use.
int threads();
/// Sets it. Throws unless 1 <= n <= 1024.
void set_threads(std::int64_t n);

/// Below this many elementary operations (about 5 microseconds of one core) a region costs more than it brings.
inline constexpr std::int64_t kParallelWork = 32768;

/// body(begin, end) over [0, n) in contiguous pieces, one a thread; `work` is the cost of one index in elementary
/// operations. Where a piece ends depends on the number of threads, so body must treat every index by itself.
template <class Body>
void parallel_ranges(std::int64_t n, std::int64_t work, const Body& body) {
  const int team = threads();
  if (team == 1 || n <= 1 || n * std::max<std::int64_t>(work, 1) < kParallelWork || omp_in_parallel()) {
    if (n > 0) body(std::int64_t{0}, n);
    return;
  }
#pragma omp parallel num_threads(team)
  {
    const std::int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    const std::int64_t begin = n * part / parts, end = n * (part + 1) / parts;
    if (begin < end) body(begin, end);
  }
}

/// The tasks 0 … n - 1 of a team: a contiguous part for each thread, and who is done helps the others. The parts are
/// those of parallel_ranges, so that one op after another finds a row in the cache of the core that wrote it: reading
/// 0.4 MB that the other of two cores has just written takes 18 µs, one's own 6. Helping keeps a team together when a
/// core is taken away or tasks are of different size.
class TaskQueue {
 public:
  TaskQueue() = default;
  TaskQueue(std::int64_t n, int team) { reset(n, team); }

  /// By one thread, while no other takes.
  void reset(std::int64_t n, int team) {
    parts_ = std::min<std::int64_t>(team, kMostParts);
    for (std::int64_t p = 0; p < parts_; ++p) {
      Part& part = part_[static_cast<std::size_t>(p)];
      part.next.store(n * p / parts_, std::memory_order_relaxed);
      part.end = n * (p + 1) / parts_;
    }
  }

  /// body(i) for tasks of one's own part, then for those of the others that nobody has begun.
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
  static constexpr std::int64_t kMostParts = 64;  // larger teams share parts
  struct alignas(64) Part {
    std::atomic<std::int64_t> next = 0;
    std::int64_t end = 0;
  };
  std::int64_t parts_ = 0;
  std::array<Part, kMostParts> part_;
};

/// How many different worker numbers parallel_for passes to its body over [0, n), when called from where this is
/// called.
inline std::int64_t workers(std::int64_t n) {
  return omp_in_parallel() ? std::min<std::int64_t>(n, 1) : std::min<std::int64_t>(n, threads());
}

/// Calls body(i) or body(i, worker) once for every i in [0, n), for bodies that do a whole block of work each; `work`
/// is the cost of one call in elementary operations. 0 <= worker < workers(n), and two calls that run at the same time
/// never have the same worker, so it is the index of a body's scratch. omp_get_thread_num() is not: inside a parallel
/// region of the caller the loop runs serially, and that function still returns the thread's number in the caller's
/// team.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t work, const Body& body) {
  const auto call = [&](std::int64_t i, std::int64_t worker) {
    if constexpr (std::invocable<const Body&, std::int64_t, std::int64_t>) {
      body(i, worker);
    } else {
      body(i);
    }
  };
  const int team = threads();
  if (team == 1 || n <= 1 || n * std::max<std::int64_t>(work, 1) < kParallelWork || omp_in_parallel()) {
    for (std::int64_t i = 0; i < n; ++i) call(i, 0);
    return;
  }
  TaskQueue queue(n, team);
#pragma omp parallel num_threads(team)
  {
    const int thread = omp_get_thread_num();
    queue.run(thread, [&](std::int64_t i) { call(i, n < team ? i : thread); });
  }
}

/// ceil(a / b) for a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace maki
