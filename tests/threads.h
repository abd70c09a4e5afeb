// The number of threads for a scope of a test.
#pragma once

#include "autograd/core/parallel.h"

namespace maki::tests {

class ThreadsScope {
 public:
  explicit ThreadsScope(int threads_in_scope) : before_(threads()) { set_threads(threads_in_scope); }
  ~ThreadsScope() { set_threads(before_); }
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int before_;
};

}  // namespace maki::tests
