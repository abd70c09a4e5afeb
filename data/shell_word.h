// Paths in commands that messages suggest.
#pragma once

#include <string>

namespace maki {

/// A path as a shell takes it: quoted where it holds more than letters, digits and what stands for itself, and in
/// bash's and zsh's notation $'…' where it holds what printable() escapes.
std::string shell_word(const std::string& text);

}  // namespace maki
