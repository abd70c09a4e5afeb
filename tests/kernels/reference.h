// Shared by the tests of the row kernels: random values, guarded outputs, the distance from a reference in long double,
// SIMD targets and thread counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "autograd/core/parallel.h"
#include "autograd/core/philox.h"
#include "autograd/core/sink.h"
#include "tests/catch.h"
#include "tests/kernels/targets.h"

namespace maki::tests {

using Reference = std::vector<long double>;

/// n normal numbers, a function of the seed.
template <class T>
std::vector<T> random_values(std::int64_t n, std::uint64_t seed, double mean = 0, double std = 1) {
  const RandomStream stream(seed, RandomPurpose::test, 4711);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(mean + std * stream.normal(2 * i));
  return x;
}

/// ‖a − b‖ / max(‖b‖, floor); NaN if either contains NaN.
template <class T>
double distance(const std::vector<T>& a, const Reference& b, long double floor = 1e-30L) {
  REQUIRE(a.size() == b.size());
  long double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double gap = static_cast<long double>(a[i]) - b[i];
    difference += gap * gap;
    norm += b[i] * b[i];
  }
  return static_cast<double>(std::sqrt(difference) / std::max(std::sqrt(norm), floor));
}

/// Unlike ==, tells −0 from 0, and finds NaN of the same bits equal.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The memory of a sink, with 8 guard elements behind it. It contains NaN if it is to be written, `start` if added to.
template <class T>
struct Output {
  static constexpr std::int64_t kGuardElements = 8;
  Output(std::int64_t n, bool add_to, T start = T{2}) : size(n), add(add_to) {
    memory.assign(static_cast<std::size_t>(n + kGuardElements), std::numeric_limits<T>::quiet_NaN());
    if (add) std::fill_n(memory.begin(), n, start);
    std::fill(memory.begin() + n, memory.end(), T{77});
  }
  T* data() { return memory.data(); }
  Sink<T> sink() { return {memory.data(), add}; }
  /// The values written. Requires that nothing was written behind them.
  std::vector<T> values() const {
    for (auto guard = memory.begin() + size; guard != memory.end(); ++guard) REQUIRE(*guard == T{77});
    return {memory.begin(), memory.begin() + size};
  }

  std::int64_t size;
  bool add;
  std::vector<T> memory;
};

/// Requires that the vector that run() returns has the same bits with 1, 2, 3, 4 and 8 threads. Restores the number of
/// threads, unless run() throws.
template <class Run>
void require_same_with_any_threads(const Run& run) {
  const int before = threads();
  set_threads(1);
  const auto alone = run();
  for (const int n : {2, 3, 4, 8}) {
    set_threads(n);
    INFO(n << " threads");
    const bool same = same_bits(alone, run());
    set_threads(before);
    REQUIRE(same);
  }
}

/// The bound that the tests set on distance(): 17 and 18 times the epsilon of T. Chosen without a derivation.
template <class T>
constexpr double bound_of() {
  return sizeof(T) == 4 ? 2e-6 : 4e-15;
}

}  // namespace maki::tests
