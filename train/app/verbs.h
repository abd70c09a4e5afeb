// The verbs of the command line. Adding one touches its own file and the table in verbs.cpp.
#pragma once

#include "train/app/command.h"

namespace maki {

/// Adds every verb, with its options and what it does.
void add_verbs(const Command& maki);

}  // namespace maki
