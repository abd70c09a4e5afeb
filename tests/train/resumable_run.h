// A small run of the binary that tests interrupt in various ways and resume.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/small_run.h"
#include "train/run/run_directory.h"

namespace maki::tests {

struct ResumableRun {
  ResumableRun(const TemporaryFolder& folder, const std::string& name, int max_steps)
      : ResumableRun(folder, name, max_steps, small_text(), kSmall) {}
  ResumableRun(const TemporaryFolder& folder, const std::string& name, int max_steps, const std::string& text,
               const Arguments& model)
      : path(folder / name), corpus(folder.write("corpus.txt", text)), steps(max_steps), options(model + kOften) {}

  /// Starts the run if there is no checkpoint yet, else resumes it.
  Finished go_on(const RunOptions& how = {}) const {
    if (newest() >= 0) return run_maki({"train", "--resume", path}, how);
    return run_maki(Arguments{"train", corpus, "--out", path, "--max-steps", std::to_string(steps)} + options, how);
  }
  /// The step of the newest checkpoint, intact or not; -1 if there is none.
  int newest() const {
    const std::vector<std::int64_t> there = RunDirectory(path).checkpoints();
    return there.empty() ? -1 : static_cast<int>(there.back());
  }
  /// The paths of all files and folders below the run directory, sorted.
  std::vector<std::string> files() const {
    std::vector<std::string> list;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      list.push_back(std::filesystem::relative(entry.path(), path).string());
    std::ranges::sort(list);
    return list;
  }

  std::string path, corpus;
  int steps;
  Arguments options;

  /// Saves, logs and prunes at every step, and evaluates at every second. A later option overrides an earlier one, such
  /// as
  /// --grad-accum of kSmall.
  inline static const Arguments kOften = {"--checkpoint-interval", "1", "--log-interval", "1", "--eval-interval", "2",
                                          "--eval-batches",        "1", "--keep-last",    "2", "--grad-accum",    "1"};
};

}  // namespace maki::tests
