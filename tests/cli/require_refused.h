// A check that the binary rejects its arguments with a message and an exit code, and a small run to test that with.
#pragma once

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/small_run.h"

namespace maki::tests {

// Requires the exit code, and that the last line of stderr begins with "maki: " and contains every one of `words`.
inline void require_refused(const Finished& finished, int exit_code, const std::vector<std::string>& words) {
  INFO("stderr: " << finished.err);
  REQUIRE(finished.exit_code == exit_code);
  const std::string text = finished.err.substr(0, finished.err.find_last_not_of('\n') + 1);
  const std::string last = text.substr(text.rfind('\n') + 1);
  REQUIRE(last.starts_with("maki: "));
  for (const std::string& word : words) {
    INFO("looking for: " << word);
    REQUIRE(last.find(word) != std::string::npos);
  }
}

/// Trains kSmall for 4 steps into folder / "run".
inline Finished train(const TemporaryFolder& folder, const std::string& corpus, const Arguments& more = {}) {
  return run_maki(Arguments{"train", corpus, "--out", folder / "run", "--max-steps", "4"} + kSmall + more);
}

}  // namespace maki::tests
