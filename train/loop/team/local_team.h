// Teams whose ranks are threads of this process: for tests, which can also lose, delay and repeat messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "train/loop/team/step_cost.h"
#include "train/loop/team/team.h"

namespace maki {

/// What happens to a message on its way.
enum class Delivery : std::uint8_t { usual, lost, twice, late };

struct LocalTeamOptions {
  /// How long a rank may keep another one waiting.
  std::chrono::milliseconds patience{3'600'000};
  std::optional<std::chrono::milliseconds> patience_of_leader = {};  ///< set: that of rank 0, instead
  /// Asked about the n-th message that a rank sends, on its thread.
  std::function<Delivery(int rank, std::uint64_t n)> deliver = {};
  std::chrono::milliseconds delay{0};  ///< of a late message
  /// A slow network: the messages of a rank leave one after the other, and each takes so long.
  NetworkSpeed speed{.seconds_per_message = 0, .seconds_per_byte = 0};
  /// Told of each message that a rank sends, on its thread.
  std::function<void(int rank, std::size_t bytes)> sent = {};
};

/// Calls work() on one thread per rank. Once all have returned, rethrows what the first of them in time has thrown; the
/// others were told of it.
void run_local_team(int size, const std::function<void(Team& team)>& work, const LocalTeamOptions& options = {});

}  // namespace maki
