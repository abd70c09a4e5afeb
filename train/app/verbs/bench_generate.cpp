// maki bench generate [options]: generates one sequence, token by token, with a state.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "data/io/number.h"
#include "data/io/os.h"
#include "nn/generate/generate.h"
#include "train/app/bench/timing.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs/bench.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

struct BenchGenerateOptions {
  explicit BenchGenerateOptions(const Command& command)
      : model(command, model_fields_and({"seed", "threads"},
                                        {"tokenizer", "vocab_size", "normalize", "ngram_prior", "share_vocabulary"})) {}
  WorkloadOptions model;
  std::int64_t windows = 0;
  std::string weights = kTrainedWeights;
  bool json = false;
};

/// A model with initial weights that generates a full context again and again.
class GenerateBench {
 public:
  GenerateBench(const Workload& w, WeightNumbers weights)
      : store_(w.config.dtype),
        model_(make_model(w.config, w.vocab_size, Scope(store_))),
        generator_(model_->as_generator()) {
    check(generator_ != nullptr, "bench generate: a model of kind {} does not generate; choose another --model",
          model_->kind());
    store_.seal(static_cast<std::uint64_t>(w.config.seed));
    if (weights == WeightNumbers::int8) store_.keep_int8_values();
    context_ = std::min(generator_->start(1)->capacity(), w.config.block_size);  // a recurrent state has no end
    options_ = {.max_tokens = context_, .sampling = {.seed = static_cast<std::uint64_t>(w.config.seed)}};
  }

  /// Generates one context of tokens, starting from id 0.
  void fill_context() {
    ids_.assign(1, 0);
    generate(*generator_, {{0}}, options_, 0, [this](std::int32_t token) {
      ids_.push_back(token);
      return true;
    });
  }
  /// Throws std::logic_error unless the logits after the whole context are the same whether it is read token by token
  /// or at once: bit for bit, or to 1e-3 of the largest for models that promise no more than rounding.
  void verify() const {
    const std::vector<std::int32_t> read(ids_.begin(), ids_.end() - 1);
    const std::unique_ptr<State> stepwise = generator_->start(1), at_once = generator_->start(1);
    Tensor logits;
    for (const std::int32_t id : read) logits = generator_->next_logits(tensor(std::vector{id}, {1, 1}), *stepwise);
    const Tensor expected = generator_->next_logits(tensor(read, {1, context_}), *at_once);
    dispatch(store_.dtype(), [&]<class T>() {
      const auto bytes = static_cast<std::size_t>(logits.numel()) * sizeof(T);
      const bool same = std::memcmp(expected.data<T>(), logits.data<T>(), bytes) == 0;
      check<std::logic_error>(same || (!generator_->same_bits_stepwise() && close(expected, logits)),
                              "generate: the logits after {} tokens, one by one, differ from those of one forward pass",
                              context_);
    });
  }

  std::int64_t tokens() const { return context_; }
  /// Bytes of the parameters that every token reads.
  double weight_bytes() const {
    if (store_.has_int8_values()) return static_cast<double>(store_.int8_values_bytes());
    return static_cast<double>(store_.multiplied_numel()) * static_cast<double>(size_of(store_.dtype()));
  }

 private:
  ParameterStore store_;
  std::unique_ptr<Model> model_;
  const Generator* generator_;
  static bool close(const Tensor& a, const Tensor& b) {
    double largest = 0, difference = 0;
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      largest = std::max(largest, std::abs(a.at(i)));
      difference = std::max(difference, std::abs(a.at(i) - b.at(i)));
    }
    return difference <= 1e-3 * largest;
  }

  std::int64_t context_ = 0;
  GenerateOptions options_;
  std::vector<std::int32_t> ids_;
};

int bench_generate(const BenchGenerateOptions& o) {
  end_at_interrupts();
  const WeightNumbers weights = parse_weights(o.weights);
  const Workload workload = o.model.workload(/*trains=*/false);
  check(!task_rule(workload.config).reads_source(),
        "bench generate: a model of kind {} does not continue a text; choose another --model", workload.config.model);
  check(workload.config.ngram_prior == 0,
        "ngram_prior: must be 0, because a benchmark has no text to count; got {}; change it in the file of --config",
        workload.config.ngram_prior);
  to_stderr("{}; initial weights, one sequence\n", describe(workload, /*trains=*/false));
  GenerateBench bench(workload, weights);
  bench.fill_context();
  bench.verify();
  const Timings times = measure_calls([&] { bench.fill_context(); }, {.calls = o.windows});
  const std::int64_t memory = os::peak_memory();
  const double bandwidth = measure_read_bytes_per_second();
  const double seconds = times.median() / static_cast<double>(bench.tokens());
  const double reading = bench.weight_bytes() / bandwidth;
  Report()
      .add("target", kernels::target())
      .add("threads", threads())
      .add("windows", times.count())
      .add("block_size", bench.tokens())
      .add("tokens_per_second", 1 / seconds)
      .add("ms_per_token", 1e3 * seconds)
      .add("weights", o.weights)
      .add("weight_bytes", bench.weight_bytes())
      .add("read_gigabytes_per_second", 1e-9 * bandwidth)
      .add("ms_to_read_weights", 1e3 * reading)
      .add("share_of_bandwidth", reading / seconds)
      .add("peak_memory_bytes", memory)
      .line("machine", fmt::format("{}, {}: reads at {:.1f} GB/s", kernels::target(), pluralize(threads(), "thread"),
                                   1e-9 * bandwidth))
      .line("token", fmt::format("{:.4f} ms ({} windows of {} tokens, each from an empty cache): {:.0f} tokens per "
                                 "second",
                                 1e3 * seconds, times.count(), bench.tokens(), 1 / seconds))
      .line("",
            fmt::format("reading {:.1f} MB of weights once at that bandwidth takes {:.4f} ms, {:.0f}% of that time{}",
                        1e-6 * bench.weight_bytes(), 1e3 * reading, 100 * reading / seconds,
                        reading > seconds ? ": the weights stay in the caches" : ""))
      .print(o.json);
  if (!o.json && times.is_noisy()) to_stderr("{}\n", times.noise_warning());
  return 0;
}

}  // namespace

void add_bench_generate(const Command& bench) {
  const Command command = bench.add_verb(
      "generate", "Benchmark token-by-token generation against reading every weight once at the measured bandwidth");
  const auto o = std::make_shared<BenchGenerateOptions>(command);
  command.add_number("--steps", o->windows, 0, kMaxCount,
                     "number of context windows to generate; 0: as many as fit into three seconds, from 10 to 1000");
  add_weights_option(command, o->weights);
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return bench_generate(*o); });
}

}  // namespace maki
