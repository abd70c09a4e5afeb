// Text from elsewhere (paths, options, files) as it is shown to a person: nothing in it can command a terminal or pass
// for a line of ours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace maki {

/// The text with everything escaped that is not meant to be seen: control characters (C0, DEL, C1) as "\n", "\t",
/// "\x1b", the marks that reorder text (U+202A…) and line separators as "\u202e", and bytes that are not UTF-8 as
/// "\xff". All other characters stay as they are, a backslash too.
std::string printable(std::string_view text);

/// The text itself, or the beginning of a longer one and its size: for a value that a sentence repeats.
std::string shortened(std::string_view text, std::size_t most = 80);

}  // namespace maki
