#include "train/app/bench/machine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/core/storage.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/peak.h"
#include "autograd/kernels/simd/target.h"
#include "data/io/os.h"
#include "train/app/bench/timing.h"

namespace maki {
namespace {

// A loop that does nothing but arithmetic in registers.
struct Chains {
  double (*run)(std::int64_t rounds);  // returns 1 if the results are correct
  std::int64_t flop;                   // per round
};

// The number of rounds that keeps one thread busy for five milliseconds, compared with which the cost of starting and
// ending a parallel region is negligible.
std::int64_t rounds_per_measurement(const Chains& chains) {
  for (std::int64_t rounds = 1 << 12;; rounds *= 2) {
    const double start = seconds_now();
    check<std::logic_error>(chains.run(rounds) == 1, "peak: the chains of multiply-adds computed a wrong result");
    if (seconds_now() - start >= 5e-3) return rounds;
  }
}

// The best rate of the measurements that fit into the time, at least one, on threads() threads.
double best_flop_per_second(const Chains& chains, double seconds) {
  const WholeTeam whole;
  const std::int64_t rounds = rounds_per_measurement(chains);
  const double flop = static_cast<double>(chains.flop) * static_cast<double>(rounds) * threads();
  double best = 0;
  for (const double start = seconds_now(); best == 0 || seconds_now() - start < seconds;) {
    const double begin = seconds_now();
    // One index per thread, so that every thread runs all rounds once.
    parallel_ranges(threads(), kMinParallelWork, [&](std::int64_t, std::int64_t) { chains.run(rounds); });
    best = std::max(best, flop / (seconds_now() - begin));
  }
  return best;
}

// Bytes of one measurement: the start of the threads takes little time in comparison.
std::int64_t measured_bytes() {
  return std::clamp<std::int64_t>(os::available_memory().value_or(1 << 30) / 64, 1 << 20, 32 << 20) / 64 * 64;
}

constexpr int kMeasurements = 5;  // the best counts; each needs arrays of its own

// Arrays of floats of which no cache holds anything: they are written past the caches, and each measurement reads one
// that has not been read yet. Each thread is the first to touch the part of an array that it works on later.
class FarArrays {
 public:
  FarArrays(int count, std::int64_t bytes_of_one) : bytes_(bytes_of_one), memory_(count * bytes_of_one) {}

  float* array(int i) const { return reinterpret_cast<float*>(memory_.data() + i * bytes_); }
  // Calls body(first element, number of elements) for the part of each thread; the parts consist of lines of 64 bytes.
  template <class Body>
  void each_part(const Body& body) const {
    parallel_ranges(bytes_ / 64, 16,
                    [&](std::int64_t begin, std::int64_t end) { body(16 * begin, 16 * (end - begin)); });
  }
  // Fills array i with value(element).
  template <class Value>
  void fill(int i, const Value& value) const {
    each_part([&](std::int64_t begin, std::int64_t n) {
      alignas(64) std::array<float, 4096> block;
      for (std::int64_t at = begin, size = 0; at < begin + n; at += size) {
        size = std::min<std::int64_t>(std::ssize(block), begin + n - at);
        for (std::int64_t k = 0; k < size; ++k) block[static_cast<std::size_t>(k)] = value(at + k);
        kernels::stream_copy(size, block.data(), array(i) + at);
      }
    });
  }

 private:
  std::int64_t bytes_;
  Storage memory_;
};

// Bytes per second, the best of all calls of body(number of the measurement), on threads() threads.
template <class Body>
double best_rate(std::int64_t bytes, const Body& body) {
  const WholeTeam whole;
  double best = 0;
  for (int i = 0; i < kMeasurements; ++i) {
    const double start = seconds_now();
    body(i);
    best = std::max(best, static_cast<double>(bytes) / (seconds_now() - start));
  }
  return best;
}

}  // namespace

ThreadTeam::ThreadTeam(std::int64_t size) : before_(threads()) { set_threads(size); }
ThreadTeam::~ThreadTeam() { set_threads(before_); }

double measure_peak_flop_per_second(DType dtype, double seconds) {
  return dispatch(dtype, [&]<class T>() {
    return best_flop_per_second({&kernels::run_fma_chains<T>, kernels::fma_flop_per_round<T>()}, seconds);
  });
}

std::string_view to_string(ProductUnit unit) {
  switch (unit) {
    case ProductUnit::amx_tiles:
      return "AMX tiles";
    case ProductUnit::bf16_pairs:
      return "pairs of bfloat16 numbers";
    case ProductUnit::bf16_matrices:
      return "matrices of bfloat16 numbers";
    case ProductUnit::multiply_adds:
      break;
  }
  return "multiply-adds";
}

ProductUnit product_unit(DType dtype, Precision precision) {
  if (dtype == DType::float32 && kernels::uses_amx()) return ProductUnit::amx_tiles;
  if (precision != Precision::bfloat16) return ProductUnit::multiply_adds;
  const kernels::Bf16Unit unit = kernels::bf16_unit();
  return unit == kernels::Bf16Unit::pairs      ? ProductUnit::bf16_pairs
         : unit == kernels::Bf16Unit::matrices ? ProductUnit::bf16_matrices
                                               : ProductUnit::multiply_adds;
}

double measure_product_flop_per_second(DType dtype, Precision precision, double seconds) {
  if (product_unit(dtype, precision) == ProductUnit::multiply_adds) return measure_peak_flop_per_second(dtype, seconds);
  if (precision == Precision::float32)
    return best_flop_per_second({&kernels::run_amx_chains, kernels::amx_flop_per_round()}, seconds);
  return best_flop_per_second({&kernels::run_bf16_chains, kernels::bf16_flop_per_round()}, seconds);
}

double measure_copy_bytes_per_second() {
  const std::int64_t size = measured_bytes();
  const FarArrays from(kMeasurements, size), to(1, size);
  for (int i = 0; i < kMeasurements; ++i) {
    from.fill(i, [&](std::int64_t k) { return static_cast<float>((i + k) % 8191); });
  }
  to.fill(0, [](std::int64_t) { return 0.0f; });
  const double best = best_rate(2 * size, [&](int i) {
    from.each_part([&](std::int64_t begin, std::int64_t n) {
      kernels::stream_copy(n, from.array(i) + begin, to.array(0) + begin);
    });
  });
  check<std::logic_error>(std::memcmp(from.array(kMeasurements - 1), to.array(0), static_cast<std::size_t>(size)) == 0,
                          "bandwidth: the copy differs from the original");
  return best;
}

double measure_read_bytes_per_second() {
  const std::int64_t size = measured_bytes();
  const FarArrays arrays(kMeasurements, size);
  for (int i = 0; i < kMeasurements; ++i) arrays.fill(i, [](std::int64_t) { return 1.0f; });
  std::atomic<bool> right = true;
  const double best = best_rate(size, [&](int i) {
    arrays.each_part([&](std::int64_t begin, std::int64_t n) {
      if (kernels::stream_sum(n, arrays.array(i) + begin) != static_cast<double>(n)) right = false;
    });
  });
  check<std::logic_error>(right, "bandwidth: the sum of what was read is wrong");
  return best;
}

Machine measure_machine(DType dtype, Precision precision) {
  Machine machine{};
  machine.product_unit = product_unit(dtype, precision);
  machine.multiply_add_flop_per_second = measure_peak_flop_per_second(dtype);
  machine.peak_flop_per_second = machine.product_unit == ProductUnit::multiply_adds
                                     ? machine.multiply_add_flop_per_second
                                     : measure_product_flop_per_second(dtype, precision);
  machine.peak_flop_per_second_one_thread = machine.peak_flop_per_second;
  if (threads() > 1) {
    const ThreadTeam one(1);
    machine.peak_flop_per_second_one_thread = measure_product_flop_per_second(dtype, precision);
  }
  machine.copy_bytes_per_second = measure_copy_bytes_per_second();
  storage_pool::trim();
  return machine;
}

}  // namespace maki
