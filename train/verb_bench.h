// What the three forms of maki bench share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/flags.h"
#include "train/machine.h"
#include "train/step_bench.h"
#include "train/verbs.h"

namespace maki {

/// The options that describe what is to be measured: a --preset of train or a --workload of the published comparisons,
/// the fields named, and --vocab-size.
class WorkloadFlags {
 public:
  WorkloadFlags(CLI::App& command, const std::vector<std::string>& fields);

  /// Checked, and its threads in use.
  Workload workload() const;

 private:
  std::string name_;
  std::int64_t vocab_size_ = 0;  // 0: the workload's
  ConfigFlags flags_;
};

/// A benchmark has nothing to save: an interrupt ends it at once.
void end_at_interrupts();

/// "4 layers, 4 heads, 128 wide, …"
std::string describe(const Workload& workload);
/// "machine  avx3, 2 threads: multiply-adds at most 456 GFLOP/s (228 on one thread), copies 21.0 GB/s"
std::string describe(const Machine& machine);

void add_bench_gemm(CLI::App& bench, Verb& chosen);
void add_bench_generate(CLI::App& bench, Verb& chosen);

}  // namespace maki
