// The verbs of the command line. Each function adds a subcommand with its options to `app`; parsing then sets `chosen`
// to the verb to run.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace maki {

/// Runs a verb and returns its exit code. Errors are thrown.
using Verb = std::function<int()>;

void add_train(CLI::App& app, Verb& chosen);
void add_generate(CLI::App& app, Verb& chosen);
void add_eval(CLI::App& app, Verb& chosen);
void add_inspect(CLI::App& app, Verb& chosen);
void add_gradcheck(CLI::App& app, Verb& chosen);
void add_bench(CLI::App& app, Verb& chosen);

}  // namespace maki
