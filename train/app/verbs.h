// The verbs of the command line. Adding one touches its own file and the table in verbs.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/app/command.h"

namespace maki {

/// Adds every verb, in the order in which help lists them. Options and actions, which take most of the time that the
/// program needs to start, only those of the verb `only`; if that is empty, of all.
void add_verbs(const Command& maki, std::string_view only);

/// Whether the words of a command line name a command that the processes which a launcher has started do together.
bool is_on_ranks(const std::vector<std::string>& words);
/// Throws Error if a launcher, such as mpirun, has started several processes, and this command, such as
/// "maki bench gemm", is for one alone.
void require_one_process(const std::string& command);

}  // namespace maki
