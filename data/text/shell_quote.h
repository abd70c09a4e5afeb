// Quotes paths for shell commands that messages suggest.
#pragma once

#include <string>

namespace maki {

/// The text as one word of a shell command. It is quoted if it is empty or contains characters that are special to a
/// shell, and written as $'…', which bash and zsh understand, if it contains characters that escape_unprintable()
/// escapes. A - at its beginning stays: a command may take the word for an option.
std::string shell_quote(const std::string& text);

}  // namespace maki
