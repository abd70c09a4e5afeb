// From the words of a command line to the verb that runs.
#pragma once

#include <string>
#include <vector>

#include "train/cli/command.h"

namespace maki {

/// Parses the words after the program's name. Returns what they ask for: to run a verb, or to print help or the
/// version. Throws Error for words that are not a command line of maki.
Action parse_command_line(const std::vector<std::string>& words);

}  // namespace maki
