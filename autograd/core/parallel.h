// Parallel loops. The one rule: bits never depend on the number of threads. A loop is shared out over outputs; a
// reduction works on blocks of a fixed size whose partial results are combined in index order. One team size serves the
// whole run.
#pragma once

#include <algorithm>
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

/// body(i) for every i in [0, n): parallel_ranges for bodies that do a whole block of work each.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t work, const Body& body) {
  parallel_ranges(n, work, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// ceil(a / b) for a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace maki
