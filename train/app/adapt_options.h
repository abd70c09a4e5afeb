// The options of verbs whose model learns while it reads.
#pragma once

#include <string>
#include <vector>

#include "train/app/command.h"
#include "train/loop/online_learner.h"

namespace maki {

struct AdaptFlags {
  bool adapt = false;
  AdaptOptions options;
  std::string needs_adapt;  ///< an option given that applies only with --adapt, or empty

  /// Throws Error if an option was given that needs --adapt.
  void check_given(const char* verb) const;
};

/// Adds --adapt, whose help is given, --adapt-lr, --adapt-window and --adapt-decay.
void add_adapt_options(const Command& command, const std::string& help, AdaptFlags& flags);
/// For the action of the verb: sets `needs_adapt` to the last of these options that was given. `more` are the names of
/// further options of the verb that need --adapt.
void note_adapt_options(const Command& command, const std::vector<std::string>& more, AdaptFlags& flags);

}  // namespace maki
