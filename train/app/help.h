// How the words of a command line are shown and read: shared by the files that know CLI11.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace maki {

/// CLI11 takes an argument in brackets, such as [MASK], for a list, and an empty value, as in --prompt=, for a missing
/// one. parse_command_line() therefore appends a byte to such words, which every option and argument removes.
inline constexpr char kGuard = '\x1F';  // "unit separator"
std::string without_guard(std::string word);

/// All verbs of a command, in the order in which help lists them, and not only those that were parsed.
std::vector<const CLI::App*> verbs_of(const CLI::App& command);
/// The names of an option that help shows: "-n", "--bias", "--no-bias".
std::vector<std::string> shown_names(const CLI::Option& option);

/// Formats help in lines that fit into COLUMNS of the environment if that is a whole number above 0, else into the
/// terminal to which standard output (or, through a pager, standard error) goes, else into 80 columns; but at least 20.
/// Lines break at spaces, and those of names also after a comma or a bar, as in "gelu|relu"; only a single longer word
/// exceeds the width.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

}  // namespace maki
