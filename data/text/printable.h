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

/// Shortens a value for an error message: the text itself if it has at most `most` bytes, else at most that many bytes
/// of it (never part of a UTF-8 character) followed by its size, like "abc… (123 bytes)". Escapes nothing.
std::string truncate_for_message(std::string_view text, std::size_t most = 80);

}  // namespace maki
