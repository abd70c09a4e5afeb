// What it takes to train a small run of every kind of model with every task that it can learn: a new kind takes part in
// the tests that use this without being named in them.
#pragma once

#include <string>
#include <vector>

#include "tests/cli/small_run.h"

namespace maki::tests {

struct SmallKind {
  std::string model, task;
  std::string corpus_text;  ///< plain text, or lines of two columns if the task needs them
  Arguments options;        ///< kSmall, with --model and --task

  std::string name() const { return model + "-" + task; }
};

std::vector<SmallKind> every_kind();

}  // namespace maki::tests
