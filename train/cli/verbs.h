// The verbs of the command line. Adding one touches its own file and the table in verbs.cpp.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace maki {

/// Runs a verb and returns its exit code. Errors are thrown.
using Verb = std::function<int()>;

/// Adds a subcommand with its options for every verb; parsing then sets `chosen` to the verb to run.
void add_verbs(CLI::App& app, Verb& chosen);

}  // namespace maki
