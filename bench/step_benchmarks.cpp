// Whole training steps: filling the batch, forward, backward, gradient norm, clipping, update.
#include <memory>

#include "bench/report.h"
#include "train/app/bench/step_bench.h"

namespace maki::bench {

void add_step_benchmarks() {
  for (const std::string& name : workload_names()) {
    add("step/" + name, [name] {
      Workload workload;
      workload.vocab_size = apply_workload(workload.config, name);
      fill_dependent_defaults(workload.config);
      const auto bench = std::make_shared<StepBench>(workload);
      bench->verify();
      return Prepared{[bench] { bench->step(); }, bench->flop_per_step(), 0, true};
    });
  }
}

}  // namespace maki::bench
