// What a run has measured, and the configurations and results of several runs side by side.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/run/checkpoint.h"
#include "train/run/history.h"
#include "train/run/run_directory.h"

namespace maki {

struct MeasuredRun {
  std::string path;       ///< as the user named it: a run directory or a .maki file
  CheckpointState state;  ///< of the newest checkpoint, or of the file
  RunHistory history;     ///< empty for a .maki file
  std::optional<BestPointer> best;
};
/// The sources of the text of its training; none if its configuration names none, or cannot be read.
std::vector<std::string> sources_of_run(const std::string& run);
/// Throws what choose_checkpoint() throws.
MeasuredRun read_measured_run(const std::string& path);

/// One fact about each of several runs, as text.
struct ComparedField {
  std::string name;
  std::vector<std::string> values;
  bool differs() const;
};
/// The text and the training fields: those in which the runs differ, and those that are equal.
std::pair<std::vector<ComparedField>, std::vector<ComparedField>> compare_configurations(
    const std::vector<MeasuredRun>& runs);

}  // namespace maki
