// A thread that ends with the object that owns it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace maki {

/// A thread that is asked to end, and waited for, when the object is destroyed.
class StoppableThread {
 public:
  explicit StoppableThread(std::function<void(StoppableThread&)> body)
      : thread_([this, body = std::move(body)] { body(*this); }) {}
  ~StoppableThread() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    asked_.notify_all();
    thread_.join();
  }
  StoppableThread(const StoppableThread&) = delete;
  StoppableThread& operator=(const StoppableThread&) = delete;

  /// For the body: waits until it is asked to end, but at most so long. Returns whether it is.
  template <class Duration>
  bool wait(const Duration& most) {
    std::unique_lock lock(mutex_);
    return asked_.wait_for(lock, most, [this] { return stopped_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable asked_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace maki
