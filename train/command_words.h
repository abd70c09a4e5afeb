// The words of a command line: other spellings of options and verbs that are understood, and sentences for words that
// are not.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace maki {

/// The arguments in maki's own spelling. Options of the verb may be written with underscores (--batch_size) or by a
/// common alias (--lr for --learning-rate), and "help VERB" stands for "VERB --help". Values of options stay as they
/// are.
std::vector<std::string> canonical_arguments(const CLI::App& app, std::vector<std::string> arguments);

/// The verb that was understood, as one types it: "maki bench gemm".
std::string command_path(const CLI::App& app);

/// The names of all verbs.
std::vector<std::string> verb_names(const CLI::App& app);

/// The sentence for a word that `app` did not understand while parsing: what it may have been meant for, and where to
/// look.
std::string unknown_word(const CLI::App& app, const std::string& word);

}  // namespace maki
