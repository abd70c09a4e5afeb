// mpirun -n RANKS maki bench network [--json]
#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "train/app/bench/network_bench.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/app/report.h"
#include "train/app/verbs/bench.h"

namespace maki {
namespace {

constexpr double kPatience = 60;  // seconds that a rank may be silent

constexpr const char* kMeaning =
    "Start it with mpirun, as the training it is to predict. Ranks send each other messages at once, as in a step of "
    "training, among 2, 4, 8 and all ranks; before that, rank 0 and the last one send one message in turn. Times are "
    "medians. The latency is what each message costs a rank, however short it is, and the bandwidth what a rank sends "
    "in a second beyond that: those of the shortest and the longest message. maki plan --ranks takes those of all "
    "ranks.";

std::string size_text(std::int64_t bytes) {
  if (bytes < 1 << 10) return fmt::format("{} B", bytes);
  return bytes < 1 << 20 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

std::string name_of(const Exchange& e) { return e.in_turn ? "in turn" : fmt::format("{} ranks", e.ranks); }

void add_rows(const std::vector<ExchangeTime>& times, Report& report) {
  report.text(fmt::format("{:10} {:>8} {:>12} {:>21} {:>9}", "exchange", "message", "us", "middle half", "Gbit/s"));
  Json rows = Json::array();
  for (const ExchangeTime& t : times) {
    const double us = 1e6 * t.times.median(), low = 1e6 * t.times.quantile(0.25), high = 1e6 * t.times.quantile(0.75);
    report.text(fmt::format("{:10} {:>8} {:12.1f} {:10.1f}-{:10.1f} {:9.3f}", name_of(t.exchange),
                            size_text(t.exchange.bytes), us, low, high, 1e-9 * t.bits_per_second()));
    rows.push_back({{"in_turn", t.exchange.in_turn},
                    {"ranks", t.exchange.ranks},
                    {"message_bytes", t.exchange.bytes},
                    {"us", us},
                    {"us_quartiles", {low, high}},
                    {"gbit_per_second", 1e-9 * t.bits_per_second()}});
  }
  report.add("exchanges", rows).text("");
}

// One fit for each kind of exchange; the last is that of all ranks.
void add_fits(const std::vector<ExchangeTime>& times, Report& report) {
  Json fits = Json::array();
  std::string options;
  for (auto first = times.begin(); first != times.end();) {
    const auto next = std::find_if(
        first, times.end(), [&](const ExchangeTime& t) { return name_of(t.exchange) != name_of(first->exchange); });
    const FittedNetwork fitted = fit_network({first, next});
    const double us = 1e6 * fitted.speed.seconds_per_message, gbit = 8e-9 / fitted.speed.seconds_per_byte;
    report.line(name_of(first->exchange),
                fmt::format("latency {:.3g} us, bandwidth {:.3g} Gbit/s; sizes in between differ by up to {:.0f}%", us,
                            gbit, 100 * fitted.largest_deviation));
    fits.push_back({{"in_turn", first->exchange.in_turn},
                    {"ranks", first->exchange.ranks},
                    {"latency_us", us},
                    {"bandwidth_gbit_per_second", gbit},
                    {"largest_deviation", fitted.largest_deviation}});
    options = fmt::format("--latency {:.3g} --bandwidth {:.3g}", us, gbit);
    first = next;
  }
  report.add("fits", fits)
      .text(fmt::format("\nwhat a step will take: maki plan CORPUS --ranks {} {}", ranks().size(), options));
}

int bench_network(bool json) {
  end_at_interrupts();
  keep_quiet(is_follower());
  join_ranks(kPatience);
  check(ranks().size() > 1,
        "bench network: measures messages between several processes; start it with mpirun -n 2 maki bench network");
  const auto lead = [&] {
    to_stderr("{} ranks, from {} to {}\n", ranks().size(), ranks().describe(0), ranks().describe(ranks().size() - 1));
    const std::vector<ExchangeTime> times = measure_network(ranks());
    Report report;
    report.add("ranks", ranks().size());
    add_rows(times, report);
    add_fits(times, report);
    report.print(json);
    const auto noisy = std::ranges::find_if(times, [](const ExchangeTime& t) { return t.times.is_noisy(); });
    if (!json && noisy != times.end()) to_stderr("{}\n", noisy->times.noise_warning());
    return 0;
  };
  const auto follow = [] {
    measure_network(ranks());
    return 0;
  };
  return run_ranks(lead, follow);
}

}  // namespace

void add_bench_network(const Command& bench) {
  const Command command =
      bench.add_verb("network", "Benchmark messages between the ranks that mpirun has started: latency and bandwidth");
  command.set_footer(kMeaning);
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "print the results as JSON");
  command.set_action([json] { return bench_network(*json); });
}

}  // namespace maki
