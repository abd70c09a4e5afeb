// Shared by the forms of `maki bench`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/app/bench/machine.h"
#include "train/app/bench/step_bench.h"
#include "train/app/flags.h"
#include "train/app/verbs.h"

namespace maki {

/// The options that describe the model to be measured: a --preset of train or a --workload, the options of the given
/// configuration fields, --vocab-size and --force.
class WorkloadOptions {
 public:
  WorkloadOptions(const Command& command, const std::vector<std::string>& fields);

  /// Returns the validated workload, and sets the number of threads that it asks for. Throws Error for invalid options,
  /// and unless --force was given if the memory does not suffice for steps or, unless it `trains`, for one sequence.
  Workload workload(bool trains) const;

 private:
  std::string name_;
  std::int64_t vocab_size_ = 0;  // 0: that of the workload
  bool force_ = false;
  ConfigFlags flags_;
};

/// Restores the default handling of SIGINT and SIGTERM: a benchmark has nothing to save, so a signal ends it at once,
/// as a process that a signal killed, without the message of interrupt.h.
void end_at_interrupts();

/// "4 layers, 4 heads, width 128, 12 x 64 tokens, vocabulary of 65"; or, unless it `trains`, so that there is no batch,
/// "…, context of 64 tokens, …".
std::string describe(const Workload& workload, bool trains);
/// "avx3 (fused), 2 threads: peak 456 GFLOP/s for multiply-adds (228 on one thread), copies at 21.0 GB/s"
std::string describe(const Machine& machine, Precision precision);

void add_bench_gemm(const Command& bench);
void add_bench_generate(const Command& bench);
void add_bench_network(const Command& bench);

}  // namespace maki
