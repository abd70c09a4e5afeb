#include "data/io/parallel_read.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "autograd/core/parallel.h"

namespace maki {
namespace {

class Pieces {
 public:
  Pieces(std::int64_t count, const std::function<void(std::int64_t)>& read,
         const std::function<void(std::int64_t)>& use)
      : count_(count), read_(read), use_(use), done_(static_cast<std::size_t>(count)) {}

  // The work of one thread.
  void run() {
    try {
      while (!failed_) {
        const std::int64_t i = next_++;
        if (i >= count_) break;
        read_(i);
        done(i).store(true, std::memory_order_release);
        // Whoever holds the mutex is using pieces; the others go on reading.
        if (const std::unique_lock lock(in_order_, std::try_to_lock); lock) use_all_read();
      }
    } catch (...) {
      const std::lock_guard lock(failing_);
      if (!failed_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  void finish() {
    if (failed_) std::rethrow_exception(failure_);
    use_all_read();
  }

 private:
  std::atomic<bool>& done(std::int64_t i) { return done_[static_cast<std::size_t>(i)]; }

  // During a call, there is nothing left to use: if it throws, it was the last one.
  void use_all_read() {
    while (used_ < count_ && done(used_).load(std::memory_order_acquire)) {
      const std::int64_t piece = std::exchange(used_, count_);
      use_(piece);
      used_ = piece + 1;
    }
  }

  const std::int64_t count_;
  const std::function<void(std::int64_t)>&read_, &use_;
  std::vector<std::atomic<bool>> done_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex in_order_;    // for used_ and calls of use_
  std::int64_t used_ = 0;  // pieces that use_ has returned for; count_ while it is called
  std::mutex failing_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr failure_;
};

}  // namespace

void read_in_parallel(std::int64_t pieces, const std::function<void(std::int64_t)>& read,
                      const std::function<void(std::int64_t)>& use) {
  Pieces all(pieces, read, use);
  // Each index is the work of a thread, not a piece: pieces are claimed in order, so that few wait to be used.
  parallel_for(std::min<std::int64_t>(threads(), pieces), kMinParallelWork, [&](std::int64_t) { all.run(); });
  all.finish();
}

}  // namespace maki
