// Glob patterns for file names: * matches any number of characters (including /), ? matches one character, [a-z] one in
// the set, and [!a-z] or [^a-z] one that is not in the set. A ] that is the first character of a set belongs to it, and
// a [ without its ] stands for itself. No character escapes another.
#pragma once

#include <string_view>

namespace maki {

/// Whether the whole name matches the pattern. Both are UTF-8 and are compared character by character; invalid bytes
/// count as U+FFFD.
bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace maki
