#include "autograd/core/parallel.h"

#include <atomic>

#include "autograd/core/check.h"

namespace maki {
namespace {

// More than machines usually have cores. libgomp ends the process if it cannot start as many threads as it is told to.
constexpr int kMaxThreads = 1024;

std::atomic<int> team = 0;  // 0: not known yet

// What libgomp knows: OMP_NUM_THREADS or, if that is not set, the processors of the affinity mask.
int initial_threads() {
  const int n = std::max(1, omp_get_max_threads());
  check(n <= std::max(kMaxThreads, omp_get_num_procs()), "threads: OMP_NUM_THREADS must be between 1 and {}; got {}",
        kMaxThreads, n);
  return std::min(n, kMaxThreads);
}

}  // namespace

int threads() {
  const int known = team.load(std::memory_order_relaxed);
  if (known > 0) return known;
  int unknown = 0;  // another thread may have set it meanwhile
  const int n = initial_threads();
  return team.compare_exchange_strong(unknown, n) ? n : unknown;
}

void set_threads(std::int64_t n) {
  check(n >= 1 && n <= kMaxThreads, "threads: must be between 1 and {}; got {}", kMaxThreads, n);
  team = static_cast<int>(n);
}

}  // namespace maki
