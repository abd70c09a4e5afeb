// What an error that ends the program means to its caller.
#pragma once

#include <string>

namespace maki {

/// The exit codes that docs/guide.md documents; 6 is that of RankError.
namespace exit_code {
inline constexpr int kDone = 0, kDefect = 1, kUsage = 2, kCorpus = 3, kCheckpoint = 4, kDiverged = 5;
}

struct Failure {
  int exit_code;
  std::string sentence;  ///< empty: nothing is said, because nobody listens
};
/// Of the exception that is being handled.
Failure current_failure();

}  // namespace maki
