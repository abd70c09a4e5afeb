// From the words of a command line to the verb that runs.
#pragma once

#include <string>
#include <vector>

#include "train/app/command.h"

namespace maki {

/// Parses the words after the program's name. Returns what they ask for, which has not happened yet: to run a verb, or
/// to print help or the version to stdout. What the action throws is up to the verb. Throws Error for words that are
/// not a command line of maki, such as none at all, or a number out of range, even if they ask for help as well.
Action parse_command_line(const std::vector<std::string>& words);

}  // namespace maki
