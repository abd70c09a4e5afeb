// Messages between the ranks of a team, timed as the steps of training send them: each rank to each other at once.
#pragma once

#include <cstdint>
#include <vector>

#include "train/app/bench/timing.h"
#include "train/loop/team/step_cost.h"
#include "train/loop/team/team.h"

namespace maki {

/// The first `ranks` ranks send each other one message each; or rank 0 and the last one send one in turn, which takes
/// twice the time of one message.
struct Exchange {
  std::int64_t ranks = 2, bytes = 8;
  bool in_turn = false;

  /// What a rank sends in the time that is measured.
  std::int64_t messages() const { return in_turn ? 1 : ranks - 1; }
  std::int64_t bytes_sent() const { return messages() * bytes; }
};

struct ExchangeTime {
  Exchange exchange;
  Timings times;
  double bits_per_second() const { return 8 * static_cast<double>(exchange.bytes_sent()) / times.median(); }
};

/// Exchanges of all sizes: in turn, then among 2, 4, 8, … and all ranks. Called by all ranks together: the result is on
/// rank 0, and empty on the others. Each is verified before it is timed, for about so many seconds. Throws
/// std::logic_error if a rank receives other bytes than it was sent, and RankError. Requires: several ranks.
std::vector<ExchangeTime> measure_network(Team& team, double seconds = 0.2);

struct FittedNetwork {
  NetworkSpeed speed;
  double largest_deviation = 0;  ///< of what the two numbers predict for the sizes in between, relative to the time
};
/// The two numbers with which the shortest and the longest message take their median times. Requires: messages of two
/// sizes among equally many ranks.
FittedNetwork fit_network(const std::vector<ExchangeTime>& times);

}  // namespace maki
