// Shared by all benchmarks: results are verified before they are timed, and speeds are reported as fractions of the
// machine's limits.
#pragma once

#include <functional>
#include <string>

#include "train/app/bench/machine.h"

namespace maki::bench {

/// The limits of the machine with this number of threads, measured at the first call.
const Machine& machine(std::int64_t threads);

/// A benchmark whose result was verified and which is ready to be timed.
struct Prepared {
  std::function<void()> run;
  double flop = 0, bytes = 0;  ///< per run; 0: not counted
  bool products = false;       ///< compare FLOP with the peak of matrix products (AMX tiles) instead of multiply-adds
};

/// Registers `name/threads:N` for N = 1 and for all threads. `prepare` verifies the result before the first run. If it
/// throws, the message is shown instead of a time and the program fails. Reports GFLOP/s with their fraction of the
/// peak, and GB/s with their fraction of the bandwidth of a copy (above 1 if caches serve the data).
void add(const std::string& name, std::function<Prepared()> prepare);
/// Whether any benchmark threw an exception.
bool anything_failed();

void add_gemm_benchmarks();
void add_kernel_benchmarks();
void add_step_benchmarks();
void add_tile_benchmarks();

}  // namespace maki::bench
