// Patterns for names of files: * stands for any characters, ? for one, [a-z] for one of a set, [!a-z] for one of no
// set.
#pragma once

#include <string_view>

namespace maki {

/// Both are UTF-8 and are compared by characters.
bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace maki
