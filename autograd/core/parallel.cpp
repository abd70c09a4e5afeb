#include "autograd/core/parallel.h"

#include <atomic>

#include "autograd/core/check.h"

namespace maki {
namespace {

std::atomic<int>& team() {
  static std::atomic<int> size = std::max(1, omp_get_max_threads());  // respects OMP_NUM_THREADS and the affinity mask
  return size;
}

}  // namespace

int threads() { return team().load(std::memory_order_relaxed); }

void set_threads(std::int64_t n) {
  check(n >= 1 && n <= 1024, "threads: must be between 1 and 1024; got {}", n);
  team() = static_cast<int>(n);
}

}  // namespace maki
