// The words of a command line: accepts other spellings of options, and explains words that maki does not recognize.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace maki {

/// Returns the arguments in maki's own spelling: options of the verb may be written with underscores (--batch_size) or
/// as a common alias (--lr for --learning-rate), "help VERB" means "VERB --help", "help" or nothing at all "--help",
/// and "version" "--version". Values of options, what follows "--", and words that it does not know are not changed.
/// `app` need not have parsed anything.
std::vector<std::string> canonical_arguments(const CLI::App& app, std::vector<std::string> arguments);

/// The alias of one letter for an option, such as "-o" for "--out"; empty if it has none.
std::string short_alias(std::string_view option);

/// CLI11 takes an argument in brackets, such as [MASK], for a list, and drops the brackets. canonical_arguments()
/// therefore appends a byte to such an argument; this removes it.
std::string without_bracket_guard(std::string argument);

/// The innermost verb that `app` has parsed; `app` itself if there is none.
const CLI::App& innermost_command(const CLI::App& app);
/// The innermost verb that `app` has parsed, as the user types it: "maki bench gemm".
std::string command_path(const CLI::App& app);

/// The names of the verbs of `command`, in the order of the help.
std::vector<std::string> verb_names(const CLI::App& command);

/// The error message for a word that `app` could not parse: what may have been meant, and which help to read.
std::string unknown_word(const CLI::App& app, const std::string& word);

}  // namespace maki
