#include "autograd/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

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

std::int64_t nanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

OtherWork other_work;
std::mutex other_work_mutex;
std::atomic<std::int64_t> left_out = 0;  // what other_work says
std::atomic<int> whole_teams = 0;

}  // namespace

int active_threads() {
  const int most = threads();
  if (most == 1 || omp_in_parallel()) return 1;
  if (whole_teams.load(std::memory_order_relaxed) > 0) return most;
  const std::unique_lock lock(other_work_mutex, std::try_to_lock);
  if (lock) {
    const std::int64_t now = nanoseconds();
    if (other_work.wants_update(now)) {
      other_work.update(now, waits_of_watched_threads());
      left_out.store(other_work.left_out(), std::memory_order_relaxed);
    }
  }
  return std::max(1, most - static_cast<int>(left_out.load(std::memory_order_relaxed)));
}

WholeTeam::WholeTeam() { ++whole_teams; }
WholeTeam::~WholeTeam() { --whole_teams; }

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
