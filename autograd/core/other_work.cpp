#include "autograd/core/other_work.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace maki {
namespace {

// How long the waits are added up: many time slices of the system's scheduler, which are 3 to 4 ms.
constexpr std::int64_t kWindow = 100'000'000;
// A thread waits this long in a window on an idle machine, for a processor to wake up and for the system's own work: of
// 100 ms, 0.5 to 2 ms, in few windows 6. Beside one busy loop, each of two threads on two cores waits 25 to 50 ms.
constexpr std::int64_t kUsualWait = kWindow / 50;
// A team whose threads together wait for this share of a window has one thread too many; from this share and a whole
// window on, two.
constexpr std::int64_t kTooLong = kWindow * 3 / 10;
// How long a team stays smaller before it tries all threads again, for one window: at first, and after several tries in
// vain, so that the tries take little of the time.
constexpr std::int64_t kFirstPause = 250'000'000, kLastPause = 2'000'000'000;

std::array<std::atomic<int>, OtherWork::kMaxWatched> watched;  // system's numbers of threads, from the front; 0: free
std::array<std::int64_t, OtherWork::kMaxWatched> all_waits;    // what waits_of_watched_threads() returns

#if defined(__linux__)
// The second number of "123 456 7", or −1.
std::int64_t second_number(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return -1;
  std::int64_t number = -1;
  std::from_chars(text.data() + space + 1, text.data() + text.size(), number);
  return number;
}

// −1 if it cannot be read: with ENOENT in errno if there is no such thread any more.
std::int64_t waited_by(int thread) {
  std::array<char, 64> path{}, text{};
  constexpr std::string_view kFolder = "/proc/self/task/", kFile = "/schedstat";
  char* end = std::ranges::copy(kFolder, path.begin()).out;
  end = std::to_chars(end, path.end() - kFile.size() - 1, thread).ptr;
  std::ranges::copy(kFile, end);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  return size <= 0 ? -1 : second_number({text.data(), static_cast<std::size_t>(size)});
}
#else
std::int64_t waited_by(int /*thread*/) { return -1; }
#endif

}  // namespace

void OtherWork::begin(std::int64_t now, std::span<const std::int64_t> waited) {
  watched_ = waited.size();
  std::ranges::copy(waited, waited_.begin());
  begun_ = now;
  next_ = now + kWindow;
  left_out_ = 0;
}

void OtherWork::update(std::int64_t now, std::span<const std::int64_t> waited) {
  if (left_out_ > 0 || waited.size() != watched_) return begin(now, waited);
  // The call may come late: the waits are then those of a longer time.
  const double windows = static_cast<double>(now - begun_) / static_cast<double>(kWindow);
  double waits = 0;
  for (std::size_t i = 0; i < watched_; ++i) {
    waits += std::max(0.0, static_cast<double>(waited[i] - waited_[i]) / windows - static_cast<double>(kUsualWait));
  }
  begin(now, waited);
  left_out_ =
      static_cast<std::int64_t>((waits + static_cast<double>(kWindow - kTooLong)) / static_cast<double>(kWindow));
  pause_ = left_out_ == 0 ? 0 : std::clamp(2 * pause_, kFirstPause, kLastPause);
  if (left_out_ > 0) next_ = now + pause_;
}

void watch_this_thread() {
#if defined(__linux__)
  thread_local bool is_watched = false;
  if (is_watched) return;
  is_watched = true;
  const int self = ::gettid();
  for (std::atomic<int>& place : watched) {
    int free = 0;
    if (place.compare_exchange_strong(free, self)) return;
  }
#endif
}

std::span<const std::int64_t> waits_of_watched_threads() {
  std::size_t count = 0;
  for (std::atomic<int>& place : watched) {
    const int thread = place.load();
    if (thread == 0) continue;
    const std::int64_t waited = waited_by(thread);
    if (waited >= 0) {
      all_waits[count++] = waited;
    } else if (errno == ENOENT) {
      place = 0;  // it has ended
    }
  }
  return {all_waits.data(), count};
}

}  // namespace maki
