#include "autograd/core/parallel.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/threads.h"

namespace maki {
namespace {

using tests::ThreadsScope;

/// Whether a loop over n tasks runs each exactly once, with worker indices below workers(n), and never two tasks of the
/// same worker at the same time.
bool workers_are_exclusive(std::int64_t n) {
  const std::int64_t count = workers(n);
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(count)), called(static_cast<std::size_t>(n));
  std::atomic<bool> good = true;
  parallel_for(n, kMinParallelWork, [&](std::int64_t i, std::int64_t worker) {
    if (worker < 0 || worker >= count) {
      good = false;
      return;
    }
    std::atomic<int>& own = busy[static_cast<std::size_t>(worker)];
    if (own.fetch_add(1) != 0) good = false;
    std::this_thread::yield();  // time for another thread to take the same worker
    own.fetch_sub(1);
    called[static_cast<std::size_t>(i)].fetch_add(1);
  });
  for (const std::atomic<int>& calls : called) good = good && calls == 1;
  return good;
}

}  // namespace

TEST_CASE("parallel_for: no two tasks that run at the same time have the same worker") {
  for (const int team : {1, 2, 3, 8, 70}) {
    const ThreadsScope scope(team);
    for (const std::int64_t n : {0, 1, 2, 3, 7, 8, 9, 64, 200}) {
      INFO(n << " tasks, " << team << " threads");
      REQUIRE(workers(n) == std::min<std::int64_t>(n, team));
      REQUIRE(workers_are_exclusive(n));
    }
  }
}

TEST_CASE("parallel_for: inside a parallel region of the caller there is one worker") {
  const ThreadsScope scope(2);
  std::atomic<int> good = 0;
#pragma omp parallel num_threads(8)
  if (workers(0) == 0 && workers(100) == 1 && workers_are_exclusive(100)) ++good;
  REQUIRE(good == 8);
}

}  // namespace maki
