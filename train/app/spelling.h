// Settings as the user writes them. A message of a library names a setting in backquotes, as in "lower `block_size`";
// the program prints the option, --block-size, or the key of the file that set it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maki {

/// From now on, these settings are printed as keys, because the file of --config has set them.
void spell_as_keys(std::vector<std::string> settings);
/// The message of a library with every setting as the user writes it.
std::string spelled(std::string_view message);
/// Prints messages of a library on stderr, each on a line.
void print_messages(const std::vector<std::string>& messages);

}  // namespace maki
