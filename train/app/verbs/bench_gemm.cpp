// maki bench gemm M,N,K… [--transpose NN|NT|TN|TT] [--precision float32|bfloat16] [--packed] [--threads N] [--json]
#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/target.h"
#include "data/io/number.h"
#include "train/app/bench/gemm_bench.h"
#include "train/app/bench/machine.h"
#include "train/app/bench/timing.h"
#include "train/app/progress.h"
#include "train/app/report.h"
#include "train/app/verbs/bench.h"

namespace maki {
namespace {

struct GemmOptions {
  std::vector<std::string> shapes;
  std::string transpose = "NN", precision = to_string(Precision::float32);
  std::int64_t threads = 0;
  bool packed = false, json = false;
};

struct GemmTime {
  GemmShape shape;
  bool on_tiles;
  Timings times;
  double flop_per_second() const { return shape.flop() / times.median(); }
};

GemmTime measure(const GemmShape& shape, const GemmOptions& o) {
  GemmBench bench(shape, o.packed, precision_named(o.precision));
  bench.run();
  bench.verify();
  return {shape, bench.on_tiles(), measure_calls([&] { bench.run(); }, {.seconds = 0.5})};
}

// The peak rates on threads() threads. The limit of a product is the peak of the unit that computes it: in float32,
// small ones do not use AMX tiles.
struct Limits {
  explicit Limits(Precision precision)
      : unit(product_unit(DType::float32, precision)),
        multiply_add(measure_peak_flop_per_second(DType::float32)),
        product(unit == ProductUnit::multiply_adds ? multiply_add
                                                   : measure_product_flop_per_second(DType::float32, precision)) {}

  double of(const GemmTime& p) const { return unit == ProductUnit::amx_tiles && !p.on_tiles ? multiply_add : product; }

  ProductUnit unit;
  double multiply_add, product;
};

void print_products(const GemmOptions& o, const std::vector<GemmTime>& products, const Limits& limits) {
  Report report;
  report.add("target", kernels::target())
      .add("threads", threads())
      .add("precision", o.precision)
      .add("multiply_add_gflop_per_second", 1e-9 * limits.multiply_add)
      .add("product_unit", to_string(limits.unit))
      .add("product_gflop_per_second", 1e-9 * limits.product)
      .text(
          fmt::format("{}, {}: peak {:.0f} GFLOP/s for multiply-adds{}\n", kernels::target(),
                      pluralize(threads(), "thread"), 1e-9 * limits.multiply_add,
                      limits.unit == ProductUnit::multiply_adds
                          ? ""
                          : fmt::format(", {:.0f} for products on {}{}", 1e-9 * limits.product, to_string(limits.unit),
                                        limits.unit == ProductUnit::amx_tiles ? " (marked *)" : "")))
      .text(fmt::format("{:20} {:>5} {:>10} {:>19} {:>9} {:>9}", "M,N,K", "", "ms", "middle half", "GFLOP/s",
                        "% of peak"));
  Json list;
  for (const GemmTime& p : products) {
    const double speed = 1e-9 * p.flop_per_second(), peak = 1e-9 * limits.of(p);
    list.push_back({{"m", p.shape.m},
                    {"n", p.shape.n},
                    {"k", p.shape.k},
                    {"transpose", p.shape.transpose()},
                    {"packed", o.packed},
                    {"on_tiles", p.on_tiles},
                    {"ms", 1e3 * p.times.median()},
                    {"gflop_per_second", speed},
                    {"peak_gflop_per_second", peak},
                    {"share_of_peak", speed / peak}});
    report.text(fmt::format("{:20} {:>5} {:10.4f} {:9.4f}-{:9.4f} {:9.1f} {:9.1f}{}",
                            fmt::format("{},{},{}", p.shape.m, p.shape.n, p.shape.k), p.shape.transpose(),
                            1e3 * p.times.median(), 1e3 * p.times.quantile(0.25), 1e3 * p.times.quantile(0.75), speed,
                            100 * speed / peak, p.on_tiles ? "*" : ""));
  }
  report.add("products", list).print(o.json);
}

int bench_gemm(const GemmOptions& o) {
  end_at_interrupts();
  if (o.threads != 0) set_threads(o.threads);
  std::vector<GemmShape> shapes;
  for (const std::string& text : o.shapes) shapes.push_back(parse_gemm_shape(text, o.transpose));
  std::vector<GemmTime> products;
  for (const GemmShape& shape : shapes) products.push_back(measure(shape, o));
  const Limits limits(precision_named(o.precision));
  print_products(o, products, limits);
  if (o.json) return 0;
  const auto noisy = std::ranges::find_if(products, [](const GemmTime& p) { return p.times.is_noisy(); });
  if (noisy != products.end()) to_stderr("{}\n", noisy->times.noise_warning());
  return 0;
}

}  // namespace

void add_bench_gemm(const Command& bench) {
  const Command command = bench.add_verb("gemm", "Benchmark matrix products, each verified before it is timed");
  const auto o = std::make_shared<GemmOptions>();
  command.add_argument("PRODUCT", o->shapes, "shapes M,N,K: [M, K] times [K, N], in float32").require();
  command.add_option("--transpose", o->transpose, "NN|NT|TN|TT",
                     "operands that are stored transposed (T) or not (N) [NN]");
  command.add_option("--precision", o->precision, "float32|bfloat16",
                     "data type to which the operands are rounded before they are multiplied [float32]");
  command.add_flag("--packed", o->packed, "prepack the right operand, as is done for weights that are reused");
  add_threads_option(command, o->threads);
  command.add_flag("--json", o->json, "print the results as JSON");
  command.set_action([o] { return bench_gemm(*o); });
}

}  // namespace maki
