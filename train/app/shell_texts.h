// Texts that are made from the verbs and options of the command line, as its help is: a manual page, and scripts with
// which shells complete words.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace maki {

/// The names of the shells that completion_script() knows.
std::vector<std::string> shell_names();

/// A script with which this shell completes verbs, options, choices, files and directories. Throws Error, which
/// suggests the nearest name, for another shell. `app` is the program with all options of all verbs.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// The page of section 1 of the manual, for man(1).
std::string manual_page(const CLI::App& app);

}  // namespace maki
