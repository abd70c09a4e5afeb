// maki bench generate [options]: generates one sequence, token by token, with a key-value cache.
#include <CLI/CLI.hpp>
#include <cstring>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "nn/generate/kv_cache.h"
#include "nn/generate/sampler.h"
#include "train/config/number.h"
#include "train/loop/progress.h"
#include "train/bench/timing.h"
#include "train/cli/verb_bench.h"

namespace maki {
namespace {

struct GenerateOptions {
  explicit GenerateOptions(CLI::App& command)
      : model(command, {"n_layer", "n_head", "n_embd", "block_size", "bias", "tie_weights", "activation", "dtype",
                        "seed", "threads"}) {}
  WorkloadFlags model;
  std::int64_t windows = 0;
  bool json = false;
};

Tensor one_id(std::int32_t id) { return tensor(std::vector<std::int32_t>{id}, {1, 1}); }

/// A model with initial weights that generates a full context window again and again.
class GenerateBench {
 public:
  explicit GenerateBench(const Workload& w)
      : store_(w.config.dtype == "float64" ? DType::float64 : DType::float32),
        model_(Scope(store_), gpt_config(w.config, w.vocab_size)),
        cache_(sealed_cache(static_cast<std::uint64_t>(w.config.seed))),
        sampler_(Sampling{.seed = static_cast<std::uint64_t>(w.config.seed)}) {}

  /// Generates one window, starting from id 0 and an empty cache.
  void fill_window() {
    cache_.clear();
    ids_.assign(1, 0);
    for (std::int64_t n = 0; n < tokens(); ++n) {
      logits_ = model_.next_logits(one_id(ids_.back()), cache_);
      ids_.push_back(sampler_(logits_, 0, static_cast<std::uint64_t>(n)));
    }
  }
  /// Throws std::logic_error unless the last logits are, bit for bit, those of a forward pass over the whole window.
  void verify() const {
    const std::vector<std::int32_t> read(ids_.begin(), ids_.end() - 1);
    const Tensor all = model_.logits(tensor(read, {1, tokens()}));
    const std::int64_t vocab_size = model_.config.vocab_size;
    dispatch(store_.dtype(), [&]<class T>() {
      const T* const expected = all.data<T>() + (tokens() - 1) * vocab_size;
      check<std::logic_error>(
          std::memcmp(expected, logits_.data<T>(), static_cast<std::size_t>(vocab_size) * sizeof(T)) == 0,
          "generate: the logits after {} tokens, one by one, differ from those of one forward pass", tokens());
    });
  }

  std::int64_t tokens() const { return model_.config.block_size; }
  /// Bytes of the parameters that every token reads.
  double weight_bytes() const {
    return static_cast<double>(counted_parameters(model_)) * static_cast<double>(size_of(store_.dtype()));
  }
  DType dtype() const { return store_.dtype(); }

 private:
  // The cache of the model, whose parameters must be sealed first.
  KvCache sealed_cache(std::uint64_t seed) {
    store_.seal(seed);
    return model_.make_cache(1);
  }

  ParameterStore store_;
  Gpt model_;
  KvCache cache_;
  Sampler sampler_;
  std::vector<std::int32_t> ids_;
  Tensor logits_;
};

int bench_generate(const GenerateOptions& o) {
  end_at_interrupts();
  const Workload workload = o.model.workload();
  to_stderr("{}; initial weights, one sequence\n", describe(workload));
  GenerateBench bench(workload);
  bench.fill_window();
  bench.verify();
  const Timings times = time_calls([&] { bench.fill_window(); }, {.calls = o.windows});
  const std::int64_t memory = peak_memory_bytes();
  const double bandwidth = measure_read_bytes_per_second();
  const double seconds = times.median() / static_cast<double>(bench.tokens());
  const double reading = bench.weight_bytes() / bandwidth;
  if (o.json) {
    const nlohmann::ordered_json facts{{"target", kernels::target()},
                                       {"threads", threads()},
                                       {"windows", times.count()},
                                       {"block_size", bench.tokens()},
                                       {"tokens_per_second", 1 / seconds},
                                       {"ms_per_token", 1e3 * seconds},
                                       {"weight_bytes", bench.weight_bytes()},
                                       {"read_gigabytes_per_second", 1e-9 * bandwidth},
                                       {"ms_to_read_weights", 1e3 * reading},
                                       {"share_of_bandwidth", reading / seconds},
                                       {"peak_memory_bytes", memory}};
    fmt::print("{}\n", facts.dump(2));
    return 0;
  }
  fmt::print("machine  {}, {}: reads at {:.1f} GB/s\n", kernels::target(), counted(threads(), "thread"),
             1e-9 * bandwidth);
  fmt::print("token    {:.4f} ms ({} windows of {} tokens, each from an empty cache): {:.0f} tokens per second\n",
             1e3 * seconds, times.count(), bench.tokens(), 1 / seconds);
  fmt::print("         reading {:.1f} MB of weights once at that bandwidth takes {:.4f} ms, {:.0f}% of that time{}\n",
             1e-6 * bench.weight_bytes(), 1e3 * reading, 100 * reading / seconds,
             reading > seconds ? ": the weights stay in the caches" : "");
  if (times.unsteady()) to_stderr("{}\n", times.caveat());
  return 0;
}

}  // namespace

void add_bench_generate(CLI::App& bench, Verb& chosen) {
  CLI::App* const command = bench.add_subcommand(
      "generate",
      "Measure generation token by token, compared with reading every weight once at the measured bandwidth");
  const auto o = std::make_shared<GenerateOptions>(*command);
  add_number(*command, "--steps", o->windows, 0, kMostCount,
             "context windows to generate; 0: as many as fit into three seconds, from 10 to 1000");
  command->add_flag("--json", o->json, "print the results as JSON");
  command->callback([o, &chosen] { chosen = [o] { return bench_generate(*o); }; });
}

}  // namespace maki
