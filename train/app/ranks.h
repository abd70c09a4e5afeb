// The processes that a launcher, such as mpirun, has started together to train one model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "train/app/failure.h"
#include "train/loop/team/team.h"

namespace maki {

/// The team of this process: alone, unless it has joined others.
Team& ranks();

/// Joins the processes that were launched together with this one, if there are any. Throws Error if that fails; ends
/// this process if not all have joined after `patience_seconds`.
void join_ranks(double patience_seconds);
/// Whether this process, by what its launcher says, leaves it to rank 0 to print.
bool is_follower();
/// From here on, this process is no follower, whatever its launcher says: what it does, no other does with it.
void stay_alone();
/// The memory that this process may use, in bytes: what is available, divided by the ranks on this machine. nullopt if
/// the system does not say.
std::optional<std::int64_t> memory_of_rank();
/// Ends the team, if there is one: called last. After an error, which this process has printed if it is rank 0, it ends
/// the processes of all ranks.
void leave_ranks();

/// Runs lead() on rank 0 and follow() on the others, and returns the exit code. What lead() throws, it throws; of the
/// others, rank 0 throws it as RankError. Throws Error if they run different versions of maki.
int run_ranks(const std::function<int()>& lead, const std::function<int()>& follow);

/// Prints why this process ends, before it has joined others or as rank 0. What all ranks refuse, such as a wrong
/// option, rank 0 prints at once. The others wait a while for the launcher to end them, because some launchers end rank
/// 0 as well when another rank ends; then the first rank of another machine, where something may be missing, prints it.
void tell_failure(const std::string& sentence);

}  // namespace maki
