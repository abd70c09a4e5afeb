// The checkpoint that a verb reads.
#pragma once

#include <string>

namespace maki {

/// find_checkpoint(), with its notes on stderr.
std::string choose_checkpoint(const std::string& run_or_file, const std::string& choice);

}  // namespace maki
