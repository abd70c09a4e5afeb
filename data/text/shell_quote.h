// Quotes paths for shell commands that messages suggest.
#pragma once

#include <string>

namespace maki {

/// The text as one word of a shell command. It is quoted if it contains characters that are special to a shell, and
/// written as $'…', which bash and zsh understand, if it contains characters that escape_unprintable() escapes.
std::string shell_quote(const std::string& text);

}  // namespace maki
