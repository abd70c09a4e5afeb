// Escapes text from outside (paths, options, files) before it is shown to the user, so that it can neither send control
// sequences to a terminal nor be mistaken for a line of maki's own output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace maki {

/// Escapes control characters (C0, DEL, C1), like "\n", "\t", "\x1b"; marks that reorder text (U+202A…) and line and
/// paragraph separators, like "\u202e"; and bytes that are not UTF-8, like "\xff". All other characters are unchanged,
/// including the backslash.
std::string escape_unprintable(std::string_view text);

}  // namespace maki
