// Quotes paths for shell commands that messages suggest.
#pragma once

#include <string>

namespace maki {

/// A path as one word of a shell command. It is quoted if it is empty or contains characters that are special to a
/// shell, and written as $'…', which bash and zsh understand, if it contains characters that escape_unprintable()
/// escapes. A - at its beginning is preceded by ./, so that no command takes the path for an option; - alone, which
/// stands for the standard input, stays.
std::string shell_quote(const std::string& path);

}  // namespace maki
