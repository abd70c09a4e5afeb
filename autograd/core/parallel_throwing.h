// Parallel loops whose bodies may throw.
#pragma once

#include <exception>
#include <vector>

#include "autograd/core/parallel.h"

namespace maki {

/// parallel_for() for a body that may throw, which no body of that one may, because nothing may leave a parallel
/// region. All indices are run; then the error of the lowest one that threw is thrown.
template <class Body>
void parallel_for_throwing(std::int64_t n, std::int64_t work, const Body& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(n));
  parallel_for(n, work, [&](std::int64_t i, std::int64_t worker) {
    try {
      if constexpr (std::invocable<const Body&, std::int64_t, std::int64_t>) {
        body(i, worker);
      } else {
        body(i);
      }
    } catch (...) {
      errors[static_cast<std::size_t>(i)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace maki
