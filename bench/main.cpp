// Usage: maki_benchmarks [--benchmark_filter=REGEX] [--benchmark_format=json] …
#include <benchmark/benchmark.h>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <map>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "bench/report.h"

namespace maki::bench {
namespace {

bool failed = false;

void report(benchmark::State& state, const Prepared& prepared) {
  const Machine& roof = machine(threads());
  const auto count = static_cast<double>(state.iterations());
  const auto rate = [&](const char* name, double amount) {
    state.counters[name] = benchmark::Counter(amount * count, benchmark::Counter::kIsRate);
  };
  if (prepared.flop > 0) {
    rate("GFLOP/s", 1e-9 * prepared.flop);
    rate("of_peak",
         prepared.flop / (prepared.products ? roof.peak_flop_per_second : roof.multiply_add_flop_per_second));
  }
  if (prepared.bytes > 0) {
    rate("GB/s", 1e-9 * prepared.bytes);
    rate("of_copy", prepared.bytes / roof.copy_bytes_per_second);
  }
}

// Runs one registered benchmark. google-benchmark calls it several times with increasing iteration counts, so the
// operands are kept until another benchmark runs; only one set of operands is in memory at a time.
void run(const std::string& name, const std::function<Prepared()>& prepare, benchmark::State& state) {
  static std::string prepared_name;
  static Prepared prepared;
  try {
    if (prepared_name != name) {
      prepared_name.clear();
      prepared = {};
      prepared = prepare();
      prepared_name = name;
    }
    for (auto _ : state) prepared.run();
    report(state, prepared);
  } catch (const std::exception& error) {
    failed = true;
    state.SkipWithError(error.what());
  }
}

}  // namespace

const Machine& machine(std::int64_t threads) {
  static std::map<std::int64_t, Machine> machines;
  const auto [place, fresh] = machines.try_emplace(threads);
  if (fresh) {
    const ThreadTeam team(threads);
    place->second = measure_machine(DType::float32, Precision::float32);
  }
  return place->second;
}

void add(const std::string& name, std::function<Prepared()> prepare) {
  static const std::int64_t all = threads();
  for (const std::int64_t size : {std::int64_t{1}, all}) {
    const std::string full_name = fmt::format("{}/threads:{}", name, size);
    benchmark::RegisterBenchmark(full_name.c_str(), [full_name, prepare, size](benchmark::State& state) {
      const ThreadTeam team(size);
      run(full_name, prepare, state);
    })->UseRealTime();
    if (all == 1) break;
  }
}

bool anything_failed() { return failed; }

}  // namespace maki::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    benchmark::AddCustomContext("target", maki::kernels::target());
    maki::bench::add_gemm_benchmarks();
    maki::bench::add_kernel_benchmarks();
    maki::bench::add_step_benchmarks();
    maki::bench::add_tile_benchmarks();
    const std::size_t run = benchmark::RunSpecifiedBenchmarks();
    if (run == 0) std::fputs("maki_benchmarks: --benchmark_filter matches no benchmark\n", stderr);
    return run == 0 ? 2 : maki::bench::anything_failed() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "maki_benchmarks: %s\n", error.what());
    return 1;
  }
}
