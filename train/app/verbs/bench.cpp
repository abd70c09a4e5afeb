// maki bench [options]      maki bench gemm M,N,K…      maki bench generate [options]      maki bench network
#include "train/app/verbs/bench.h"

#include <algorithm>
#include <csignal>
#include <fmt/ranges.h>
#include <memory>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "data/io/number.h"
#include "data/io/os.h"
#include "train/app/arithmetic.h"
#include "train/app/bench/profile.h"
#include "train/app/bench/timing.h"
#include "train/app/describe_run.h"
#include "train/app/progress.h"
#include "train/app/report.h"

namespace maki {
namespace {

constexpr std::int64_t kProfiledSteps = 5;  // after the timed ones, and not timed themselves

constexpr const char* kCountingConventions =
    "The floating-point operations of a step are counted as 6N + 12LCT per token, with L layers of width C, a "
    "context of T tokens, and N parameters without embeddings that are only looked up (a tied output layer counts "
    "once, position embeddings do not count). Attention is counted as if it were not causal. The peak is measured "
    "with independent multiply-adds in registers (on AMX tiles, where products use them), the bandwidth with a "
    "copy far larger than the caches. Each benchmark verifies its result before it is timed. Workloads are models "
    "from published comparisons; presets are those of maki train.";

// The fields that change the work of a step; the length, learning rate and text of a run do not.
std::vector<std::string> step_fields() {
  return model_fields_and({"precision", "dropout", "batch_size", "grad_accum", "seed", "label_smoothing", "optimizer",
                           "momentum", "nesterov", "recompute_blocks", "threads"},
                          {"tokenizer", "vocab_size", "normalize"});
}

struct BenchOptions {
  explicit BenchOptions(const Command& command) : model(command, step_fields()) {}
  WorkloadOptions model;
  std::int64_t steps = 0;
  bool scaling = false, json = false;
};

// A step of a team of threads, and the peak rate of so many.
struct TeamStep {
  std::int64_t threads;
  double seconds, peak_flop_per_second;
};

struct StepResult {
  Timings times;
  std::int64_t tokens, parameters, memory_bytes;
  double flop;  // of a step
  std::vector<ProfileRow> profile;
  Machine machine;
  std::vector<TeamStep> teams;  // of 1, 2, 4, … threads and, last, of all

  double flop_per_second() const { return flop / times.median(); }
  double tokens_per_second() const { return static_cast<double>(tokens) / times.median(); }
};

std::vector<TeamStep> measure_teams(StepBench& bench, const Workload& workload, std::int64_t steps) {
  std::vector<TeamStep> teams;
  const std::int64_t all = threads();
  for (std::int64_t size = 1; teams.empty() || teams.back().threads < all; size = std::min(2 * size, all)) {
    const ThreadTeam team(size);
    const double seconds = measure_calls([&] { bench.step(); }, {.calls = steps}).median();
    teams.push_back(
        {size, seconds, measure_product_flop_per_second(bench.trainer().store().dtype(), workload.config.precision)});
  }
  return teams;
}

StepResult measure(const Workload& workload, std::int64_t steps, bool scaling) {
  StepBench bench(workload);
  bench.verify();
  const Timings times = measure_calls([&] { bench.step(); }, {.calls = steps});
  const std::int64_t memory = os::peak_memory();  // before measure_machine() allocates its arrays
  return {.times = times,
          .tokens = bench.tokens_per_step(),
          .parameters = bench.trainer().store().multiplied_numel(),
          .memory_bytes = memory,
          .flop = bench.flop_per_step(),
          .profile = profile_steps(bench.trainer(), kProfiledSteps),
          .machine = measure_machine(bench.trainer().store().dtype(), workload.config.precision),
          .teams = scaling ? measure_teams(bench, workload, steps) : std::vector<TeamStep>()};
}

// How many times as fast as one thread a team is, for each of its threads.
double efficiency(const TeamStep& team, const StepResult& r) {
  return r.teams.front().seconds / team.seconds / static_cast<double>(team.threads);
}

void add_scaling(const StepResult& r, Report& report) {
  if (r.teams.empty()) return;
  Json list = Json::array();
  report.text(fmt::format("\n{:>7} {:>10} {:>9} {:>11} {:>6}", "threads", "ms", "speed-up", "efficiency", "peak"));
  for (const TeamStep& team : r.teams) {
    const double share = r.flop / team.seconds / team.peak_flop_per_second;
    list.push_back({{"threads", team.threads},
                    {"ms_per_step", 1e3 * team.seconds},
                    {"efficiency", efficiency(team, r)},
                    {"share_of_peak", share}});
    report.text(fmt::format("{:7} {:10.2f} {:9.2f} {:10.0f}% {:5.0f}%", team.threads, 1e3 * team.seconds,
                            r.teams.front().seconds / team.seconds, 100 * efficiency(team, r), 100 * share));
  }
  report.add("scaling", list);
}

void add_facts(const Workload& workload, const StepResult& r, Report& report) {
  const Config& c = workload.config;
  const double peak = 1e-9 * r.machine.peak_flop_per_second, speed = 1e-9 * r.flop_per_second();
  report.add("target", kernels::target())
      .add("arithmetic", arithmetic_here(c.precision))
      .add("threads", threads())
      .add("dtype", to_string(c.dtype))
      .add("precision", to_string(c.precision))
      .add("n_layer", c.n_layer)
      .add("n_head", c.n_head)
      .add("n_kv_head", c.kv_heads())
      .add("n_embd", c.n_embd)
      .add("block_size", c.block_size)
      .add("batch_size", c.batch_size * c.grad_accum)
      .add("vocab_size", workload.vocab_size)
      .add("bias", c.bias)
      .add("parameters", r.parameters)
      .add("product_unit", to_string(r.machine.product_unit))
      .add("peak_gflop_per_second_of_one", 1e-9 * r.machine.peak_flop_per_second_one_thread)
      .add("peak_gflop_per_second", peak)
      .add("multiply_add_gflop_per_second", 1e-9 * r.machine.multiply_add_flop_per_second)
      .add("copy_gigabytes_per_second", 1e-9 * r.machine.copy_bytes_per_second)
      .add("gflop_per_step", 1e-9 * r.flop)
      .add("gflop_per_second", speed)
      .add("share_of_peak", speed / peak)
      .add("steps", r.times.count())
      .add("ms_per_step", 1e3 * r.times.median())
      .add("ms_per_step_quartiles", {1e3 * r.times.quantile(0.25), 1e3 * r.times.quantile(0.75)})
      .add("tokens_per_second", r.tokens_per_second())
      .add("peak_memory_bytes", r.memory_bytes);
  Json profile = Json::array();
  for (const ProfileRow& row : r.profile) {
    profile.push_back({{"op", row.op},
                       {"pass", row.pass},
                       {"calls", row.calls},
                       {"ms", 1e3 * row.seconds},
                       {"flop", row.flop},
                       {"bytes", row.bytes}});
  }
  report.add("profile", profile);
}

// A rate in units of 1e9 per second; empty if there is no amount or no time.
std::string rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", 1e-9 * amount / seconds) : "";
}

void add_profile(const std::vector<ProfileRow>& rows, Report& report) {
  double all = 0;
  for (const ProfileRow& row : rows) all += row.seconds;
  report.text(
      fmt::format("\n{:22} {:9} {:>5} {:>10} {:>6} {:>9} {:>8}", "op", "pass", "calls", "ms", "%", "GFLOP/s", "GB/s"));
  for (const ProfileRow& row : rows) {
    report.text(fmt::format("{:22} {:9} {:5} {:10.3f} {:6.1f} {:>9} {:>8}", row.op, row.pass, row.calls,
                            1e3 * row.seconds, 100 * row.seconds / all, rate(row.flop, row.seconds),
                            rate(row.bytes, row.seconds)));
  }
}

int bench_step(const BenchOptions& o) {
  end_at_interrupts();
  const Workload workload = o.model.workload(/*trains=*/true);
  to_stderr("{}; random tokens\n", describe(workload, /*trains=*/true));
  const StepResult r = measure(workload, o.steps, o.scaling);
  Report report;
  add_facts(workload, r, report);
  report.line("machine", describe(r.machine, workload.config.precision))
      .line("step",
            fmt::format("{:.2f} ms (median of {} steps; the middle half: {:.2f} to {:.2f})", 1e3 * r.times.median(),
                        r.times.count(), 1e3 * r.times.quantile(0.25), 1e3 * r.times.quantile(0.75)))
      .line("", fmt::format("{:.2f} GFLOP for {} parameters and {} tokens: {:.1f} GFLOP/s, {:.1f}% of the peak",
                            1e-9 * r.flop, with_separators(r.parameters), with_separators(r.tokens),
                            1e-9 * r.flop_per_second(), 100 * r.flop_per_second() / r.machine.peak_flop_per_second))
      .line("", fmt::format("{} tokens per second, peak memory {:.0f} MB",
                            with_separators(static_cast<std::int64_t>(r.tokens_per_second())),
                            1e-6 * static_cast<double>(r.memory_bytes)));
  add_profile(r.profile, report);
  add_scaling(r, report);
  report.print(o.json);
  if (!o.json && r.times.is_noisy()) to_stderr("{}\n", r.times.noise_warning());
  return 0;
}

}  // namespace

WorkloadOptions::WorkloadOptions(const Command& command, const std::vector<std::string>& fields)
    : flags_(command, fields) {
  command.add_option(
      "--workload", name_, "NAME",
      fmt::format("model from a published comparison, instead of a preset: {}", fmt::join(workload_names(), ", ")));
  command.add_number("--vocab-size", vocab_size_, 0, kMaxCount,
                     "number of tokens in the vocabulary; 0: that of the workload, else 65");
  add_memory_option(command, force_);
}

Workload WorkloadOptions::workload(bool trains) const {
  Workload workload;
  Config& config = workload.config;
  check(name_.empty() || !flags_.has_preset(),
        "bench: --workload and --preset both describe a model; use only one of them");
  apply_preset(config, "quickstart");
  if (!name_.empty()) workload.vocab_size = apply_workload(config, name_);
  flags_.apply(config, "");
  fill_dependent_defaults(config);
  validate(config);
  flags_.require_effect(config);
  if (vocab_size_ > 0) workload.vocab_size = vocab_size_;
  if (config.threads > 0) set_threads(config.threads);
  Config measured = config;
  if (!trains) measured.batch_size = measured.grad_accum = 1;
  MemoryNeed need = memory_needed(measured, random_vocab_sizes(measured, workload.vocab_size));
  if (!trains) need.gradients = need.moments = 0;
  require_memory(measured, need, force_);
  return workload;
}

void end_at_interrupts() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

std::string describe(const Workload& workload, bool trains) {
  const Config& c = workload.config;
  const std::string tokens = pluralize(c.block_size, "token"),
                    read = trains ? fmt::format("{} x {}", c.batch_size * c.grad_accum, tokens)
                                  : fmt::format("context of {}", tokens);
  return fmt::format("{}, {}, width {}, {}, vocabulary of {}", pluralize(c.n_layer, "layer"),
                     pluralize(c.n_head, "head"), c.n_embd, read, with_separators(workload.vocab_size));
}

std::string describe(const Machine& m, Precision precision) {
  const std::string vectors = fmt::format("{:.0f} GFLOP/s", 1e-9 * m.multiply_add_flop_per_second),
                    one = fmt::format(" ({:.0f} on one thread)", 1e-9 * m.peak_flop_per_second_one_thread);
  const std::string limits = m.product_unit == ProductUnit::multiply_adds
                                 ? fmt::format("peak {} for multiply-adds{}", vectors, one)
                                 : fmt::format("peak {:.0f} GFLOP/s for products on {}{}, {} for other multiply-adds",
                                               1e-9 * m.peak_flop_per_second, to_string(m.product_unit), one, vectors);
  return fmt::format("{} ({}), {}: {}, copies at {:.1f} GB/s", kernels::target(), arithmetic_here(precision),
                     pluralize(threads(), "thread"), limits, 1e-9 * m.copy_bytes_per_second);
}

void add_bench(const Command& command) {
  command.set_footer(kCountingConventions);
  const auto o = std::make_shared<BenchOptions>(command);
  command.add_number("--steps", o->steps, 0, kMaxCount,
                     "number of steps to time; 0: as many as fit into three seconds, from 10 to 1000");
  command.add_flag(
      "--scaling", o->scaling,
      "time steps of 1, 2, 4, … threads, too: their speed-up, and their share of the peak of so many threads");
  command.add_flag("--json", o->json, "print the results as JSON");
  add_bench_gemm(command);
  add_bench_generate(command);
  add_bench_network(command);
  command.set_action([o] { return bench_step(*o); });
}

}  // namespace maki
