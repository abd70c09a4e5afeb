#include "autograd/core/other_work.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "autograd/core/parallel.h"
#include "tests/catch.h"
#include "tests/threads.h"

namespace maki {
namespace {

using tests::ThreadsScope;

constexpr std::int64_t kMillisecond = 1'000'000;

/// A team whose threads wait, with a clock that the test turns.
class Waiting {
 public:
  explicit Waiting(std::size_t team) : waited_(team) { work_.update(now_, waited_); }

  /// 100 ms pass, in which thread i waits for waits[i] ms. How many threads are to be left out then.
  std::int64_t after_window(const std::vector<std::int64_t>& waits) {
    for (std::size_t i = 0; i < waited_.size(); ++i) waited_[i] += waits[i] * kMillisecond;
    now_ += 100 * kMillisecond;
    REQUIRE(work_.wants_update(now_));
    work_.update(now_, waited_);
    return work_.left_out();
  }
  /// The milliseconds that pass before it wants to know anything, up to 10 s; all threads are tried again then.
  std::int64_t pause() {
    const std::int64_t begin = now_;
    while (!work_.wants_update(now_) && now_ < begin + 10'000 * kMillisecond) now_ += kMillisecond;
    work_.update(now_, waited_);
    REQUIRE(work_.left_out() == 0);
    return (now_ - begin) / kMillisecond;
  }

 private:
  OtherWork work_;
  std::int64_t now_ = 5 * kMillisecond;
  std::vector<std::int64_t> waited_;
};

TEST_CASE("no thread is left out where threads wait as on an idle machine") {
  Waiting two(2), many(64);
  for (int window = 0; window < 20; ++window) {
    REQUIRE(two.after_window({6, 2}) == 0);
    REQUIRE(many.after_window(std::vector<std::int64_t>(64, 2)) == 0);
  }
}

TEST_CASE("as many threads are left out as wait at a time") {
  REQUIRE(Waiting(2).after_window({45, 45}) == 1);  // one busy loop, which moves between two cores
  REQUIRE(Waiting(2).after_window({0, 50}) == 1);   // one that stays
  REQUIRE(Waiting(16).after_window(std::vector<std::int64_t>(16, 3)) == 0);
  REQUIRE(Waiting(16).after_window(std::vector<std::int64_t>(16, 6)) == 1);  // one that moves between 16
  REQUIRE(Waiting(8).after_window(std::vector<std::int64_t>(8, 75)) == 6);   // eight threads on two cores
  REQUIRE(Waiting(4).after_window({100, 100, 100, 100}) == 4);
}

TEST_CASE("all threads are tried again after a pause that grows to two seconds, and from the start once they run") {
  Waiting team(2);
  for (const std::int64_t pause : {250, 500, 1000, 2000, 2000}) {
    REQUIRE(team.after_window({50, 50}) == 1);
    REQUIRE(team.pause() == pause);
  }
  REQUIRE(team.after_window({1, 1}) == 0);
  REQUIRE(team.after_window({50, 50}) == 1);
  REQUIRE(team.pause() == 250);
}

TEST_CASE("waits before a thread joined the team do not count") {
  OtherWork work;
  work.update(0, std::vector<std::int64_t>{0});
  work.update(100 * kMillisecond, std::vector<std::int64_t>{0, 90 * kMillisecond});
  REQUIRE(work.left_out() == 0);
}

TEST_CASE("the waits of a watched thread are known and never shrink, where the system says them") {
  if (::access("/proc/self/schedstat", R_OK) != 0) return;
  watch_this_thread();
  watch_this_thread();
  const std::span<const std::int64_t> first = waits_of_watched_threads();
  REQUIRE(!first.empty());
  const std::vector<std::int64_t> before(first.begin(), first.end());
  const std::span<const std::int64_t> after = waits_of_watched_threads();
  REQUIRE(after.size() <= before.size());
  if (after.size() == before.size()) {
    for (std::size_t i = 0; i < before.size(); ++i) REQUIRE(after[i] >= before[i]);
  }
}

TEST_CASE("the waits of a thread are the second number of its line") {
  const std::string path = "/proc/self/task/" + std::to_string(::getpid()) + "/schedstat";
  const auto line = [&] {
    std::int64_t run = 0, waited = -1;
    std::ifstream(path) >> run >> waited;
    return waited;
  };
  const std::int64_t before = line();
  if (before < 0) return;
  watch_this_thread();
  const std::span<const std::int64_t> waits = waits_of_watched_threads();
  const std::int64_t after = line();
  REQUIRE(std::ranges::any_of(waits, [&](std::int64_t waited) { return before <= waited && waited <= after; }));
}

TEST_CASE("a team has one thread in a parallel region, and all of them while measured") {
  const ThreadsScope three(3);
  REQUIRE(active_threads() >= 1);
  REQUIRE(active_threads() <= 3);
  int inside = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    inside = active_threads();
  }
  REQUIRE(inside == 1);
  const WholeTeam whole;
  REQUIRE(active_threads() == 3);
  for (const int team : {1, 2}) {
    const ThreadsScope scope(team);
    REQUIRE(active_threads() == team);
  }
}

}  // namespace
}  // namespace maki
