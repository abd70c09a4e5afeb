// What the benchmarks share: verification before timing, and speeds as shares of what the machine can do.
#pragma once

#include <functional>
#include <string>

#include "train/machine.h"

namespace maki::bench {

/// Of this number of threads; measured at the first call.
const Machine& machine(std::int64_t threads);

/// Something that was verified and is ready to be timed.
struct Prepared {
  std::function<void()> run;
  double flop = 0, bytes = 0;  ///< of one run; 0: not counted
  bool products = false;       ///< the limit of its flop is that of products (tiles of AMX), not of multiply-adds
};

/// Registers `name/threads:N` for one thread and for all. `prepare` runs once and verifies; what it throws is shown in
/// place of a time, and makes the program fail. Reported are GFLOP/s with their share of the peak, and GB/s with their
/// share of the bandwidth of a copy (above 1 where the caches serve).
void add(const std::string& name, std::function<Prepared()> prepare);
/// Did anything throw?
bool anything_failed();

void add_gemm_benchmarks();
void add_kernel_benchmarks();
void add_step_benchmarks();
void add_tile_benchmarks();

}  // namespace maki::bench
