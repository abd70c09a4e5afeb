// maki bench network: what messages between ranks cost. No test depends on how fast anything is.
#include "tests/catch.h"
#include "tests/cli/small_run.h"
#include "train/app/bench/network_bench.h"
#include "train/app/bench/timing.h"
#include "train/loop/team/local_team.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("bench network measures what ranks send each other, and fits its two numbers") {
  std::vector<ExchangeTime> times;
  run_local_team(3, [&](Team& team) {
    auto measured = measure_network(team, /*seconds=*/0);
    if (team.leads()) times = std::move(measured);
  });
  REQUIRE(times.size() == 3 * 6);  // in turn, 2 and 3 ranks; six sizes
  for (const ExchangeTime& t : times) {
    const auto& e = t.exchange;
    INFO(e.ranks << " ranks, " << e.bytes << " bytes, " << e.in_turn);
    // How long it takes depends on when the ranks begin, and so on what else the machine does.
    REQUIRE(t.times.median() > 0);
  }
  REQUIRE(times.back().exchange.ranks == 3);
  REQUIRE(times.back().exchange.bytes_sent() == 2 * times.back().exchange.bytes);

  const auto timed = [](std::int64_t ranks, std::int64_t bytes, double seconds) {
    return ExchangeTime{{.ranks = ranks, .bytes = bytes}, Timings({seconds})};
  };
  const FittedNetwork fitted = fit_network({timed(5, 0, 4e-3), timed(5, 100, 9e-3), timed(5, 1000, 44e-3)});
  REQUIRE(fitted.speed.seconds_per_message == Approx(1e-3));
  REQUIRE(fitted.speed.seconds_per_byte == Approx(1e-5));
  REQUIRE(fitted.largest_deviation == Approx(1. / 9));
}

TEST_CASE("bench network needs several ranks") {
  for (const Arguments& options : {Arguments{}, Arguments{"--json"}}) {
    const Finished alone = run_maki(Arguments{"bench", "network"} + options);
    REQUIRE(alone.exit_code == 2);
    REQUIRE_THAT(alone.err, ContainsSubstring("mpirun"));
  }
}
