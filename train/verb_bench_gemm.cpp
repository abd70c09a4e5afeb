// maki bench gemm M,N,K… [--transpose NN|NT|TN|TT] [--packed] [--threads N] [--json]
#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "autograd/core/parallel.h"
#include "autograd/kernels/target.h"
#include "train/gemm_bench.h"
#include "train/number.h"
#include "train/progress.h"
#include "train/timing.h"
#include "train/verb_bench.h"

namespace maki {
namespace {

struct GemmOptions {
  std::vector<std::string> shapes;
  std::string transpose = "NN";
  std::int64_t threads = 0;
  bool packed = false, json = false;
};

struct GemmTime {
  GemmShape shape;
  Timings times;
  double flop_per_second() const { return shape.flop() / times.median(); }
};

GemmTime measure(const GemmShape& shape, bool packed) {
  GemmBench bench(shape, packed);
  bench.run();
  bench.verify();
  return {shape, time_calls([&] { bench.run(); }, {.seconds = 0.5})};
}

int bench_gemm(const GemmOptions& o) {
  end_at_interrupts();
  if (o.threads != 0) set_threads(o.threads);
  std::vector<GemmShape> shapes;
  for (const std::string& text : o.shapes) shapes.push_back(parse_gemm_shape(text, o.transpose));
  std::vector<GemmTime> products;
  for (const GemmShape& shape : shapes) products.push_back(measure(shape, o.packed));
  const double peak = measure_peak_flop_per_second(DType::float32);
  if (o.json) {
    nlohmann::ordered_json facts{
        {"target", kernels::target()}, {"threads", threads()}, {"peak_gflop_per_second", 1e-9 * peak}};
    for (const GemmTime& p : products) {
      const double speed = 1e-9 * p.flop_per_second();
      facts["products"].push_back({{"m", p.shape.m},
                                   {"n", p.shape.n},
                                   {"k", p.shape.k},
                                   {"transpose", p.shape.transpose()},
                                   {"packed", o.packed},
                                   {"ms", 1e3 * p.times.median()},
                                   {"gflop_per_second", speed},
                                   {"share_of_peak", speed / (1e-9 * peak)}});
    }
    fmt::print("{}\n", facts.dump(2));
    return 0;
  }
  fmt::print("{}, {} threads: multiply-adds at most {:.0f} GFLOP/s\n\n", kernels::target(), threads(), 1e-9 * peak);
  fmt::print("{:20} {:>5} {:>10} {:>19} {:>9} {:>6}\n", "M,N,K", "", "ms", "middle half", "GFLOP/s", "%");
  for (const GemmTime& p : products) {
    fmt::print("{:20} {:>5} {:10.4f} {:9.4f}-{:9.4f} {:9.1f} {:6.1f}\n",
               fmt::format("{},{},{}", p.shape.m, p.shape.n, p.shape.k), p.shape.transpose(), 1e3 * p.times.median(),
               1e3 * p.times.quantile(0.25), 1e3 * p.times.quantile(0.75), 1e-9 * p.flop_per_second(),
               100 * p.flop_per_second() / peak);
  }
  for (const GemmTime& p : products) {
    if (!p.times.unsteady()) continue;
    to_stderr("{}\n", p.times.caveat());
    break;
  }
  return 0;
}

}  // namespace

void add_bench_gemm(CLI::App& bench, Verb& chosen) {
  CLI::App* const command = bench.add_subcommand("gemm", "Measure single matrix products, each verified first");
  const auto o = std::make_shared<GemmOptions>();
  command->add_option("PRODUCT", o->shapes, "M,N,K: [M, K] times [K, N], in float32")->required();
  command->add_option("--transpose", o->transpose, "which side is given transposed: NN, NT, TN or TT [NN]")
      ->take_last();
  command->add_flag("--packed", o->packed, "the right side is packed beforehand, as weights are that serve often");
  add_number(*command, "--threads", o->threads, 0, kMostThreads, "0: OMP_NUM_THREADS, else every core");
  command->add_flag("--json", o->json, "facts as JSON");
  command->callback([o, &chosen] { chosen = [o] { return bench_gemm(*o); }; });
}

}  // namespace maki
