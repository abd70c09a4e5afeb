// What the three forms of maki bench share.
#pragma once

#include <cstdint>
#include <string>

#include "train/flags.h"
#include "train/machine.h"
#include "train/step_bench.h"
#include "train/verbs.h"

namespace maki {

/// The options that describe a model to be measured: those of train, with workloads for presets, and --vocab-size.
class WorkloadFlags {
 public:
  explicit WorkloadFlags(CLI::App& command);
  WorkloadFlags(const WorkloadFlags&) = delete;
  WorkloadFlags& operator=(const WorkloadFlags&) = delete;

  /// Checked, and its threads in use.
  Workload workload() const;

 private:
  Presets presets();

  std::int64_t vocab_size_ = 0;  // 0: the preset's
  mutable std::int64_t preset_vocab_size_ = 0;
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
