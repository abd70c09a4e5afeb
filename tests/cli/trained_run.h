// A small run of 30 steps, for tests of what can be done with one.
#pragma once

#include <string>

#include "tests/cli/small_run.h"

namespace maki::tests {

struct TrainedRun {
  TrainedRun() {
    const std::string corpus = folder.write("corpus.txt", small_text());
    require_ok(run_maki(Arguments{"train", corpus, "--out", path, "--max-steps", "30"} + kSmall));
  }
  TemporaryFolder folder;
  std::string path = folder / "run";
};

}  // namespace maki::tests
