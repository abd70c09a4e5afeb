// Small training runs of the binary: a generated corpus and a model that trains within a second.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cli/process.h"

namespace maki::tests {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// About 4,800 characters: words in random, reproducible order.
std::string small_text();
/// About 2,100 characters: as many Japanese words as small_text() has English ones, without spaces.
std::string small_japanese_text();

/// Two layers of width 16, with dropout, gradient accumulation, clipping, a cosine schedule and evaluation.
inline const Arguments kSmall = {
    "--n-layer",    "2",      "--n-head",        "2",  "--n-embd",         "16",  "--block-size",          "16",
    "--batch-size", "3",      "--grad-accum",    "3",  "--dropout",        "0.1", "--grad-clip",           "0.5",
    "--schedule",   "cosine", "--warmup-steps",  "5",  "--lr-decay-steps", "60",  "--learning-rate",       "0.003",
    "--min-lr",     "0.0003", "--eval-interval", "10", "--eval-batches",   "2",   "--checkpoint-interval", "20"};

/// The arguments without an option and its value.
inline Arguments without(const std::string& option, Arguments arguments) {
  const auto at = std::ranges::find(arguments, option);
  arguments.erase(at, at + 2);
  return arguments;
}

/// Requires exit code 0, and returns its argument.
inline Finished require_ok(const Finished& finished) {
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished;
}

/// The path of the checkpoint of a step: run + "/checkpoints/step-00000060.maki".
std::string checkpoint(const std::string& run, int step);

}  // namespace maki::tests
