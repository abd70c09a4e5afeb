// Errors: every mistake a caller can make throws maki::Error through check(). Nothing in the libraries prints, exits or
// aborts; only the command line's main() catches. Folders that need a kind of their own (a bad corpus, a bad
// checkpoint) derive from Error.
#pragma once

#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace maki {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws E with the formatted sentence: "op: rule; got values". The arguments are formatted only when the rule is
/// broken.
template <class E = Error, class... Args>
void check(bool condition, fmt::format_string<Args...> sentence, Args&&... args) {
  if (condition) [[likely]]
    return;
  throw E(fmt::format(sentence, std::forward<Args>(args)...));
}

template <class E = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) {
  throw E(fmt::format(sentence, std::forward<Args>(args)...));
}

}  // namespace maki
