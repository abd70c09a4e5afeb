// Errors: mistakes of a caller throw maki::Error through check(). Conditions that a comment introduces with "Requires:"
// are left to the caller, and in general not checked. The libraries never print, exit or abort; main() of the command
// line turns what is thrown into a message and an exit code. Folders that need an exception type of their own (for an
// invalid corpus or a corrupt checkpoint) derive it from Error.
#pragma once

// -ffast-math lets the compiler assume that no number is NaN or infinite, so it removes every search for one.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "maki searches for numbers that are not finite: compile it without fast arithmetic, such as that of -Ofast"
#endif

#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace maki {

/// Base class of all exceptions that maki throws on purpose. what() is one sentence: the rule that was broken, the
/// value received and, where it helps, what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws E with the formatted sentence unless `condition` holds. Sentences have the form "op: rule; got values"; they
/// are formatted only when the check fails, but the arguments themselves are always evaluated.
template <class E = Error, class... Args>
void check(bool condition, fmt::format_string<Args...> sentence, Args&&... args) {
  if (condition) [[likely]]
    return;
  throw E(fmt::format(sentence, std::forward<Args>(args)...));
}

/// Throws E with the formatted sentence.
template <class E = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) {
  throw E(fmt::format(sentence, std::forward<Args>(args)...));
}

/// Shortens a value for an error message: the text itself if it has at most `most` bytes, else at most that many bytes
/// of it (never part of a UTF-8 character) followed by its size, like "abc… (123 bytes)". Escapes nothing.
std::string truncate_for_message(std::string_view text, std::size_t most = 80);

}  // namespace maki
