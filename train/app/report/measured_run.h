// What a run has measured, and the configurations and results of several runs side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/app/report/html.h"
#include "train/run/checkpoint.h"
#include "train/run/history.h"
#include "train/run/run_directory.h"

namespace maki {

struct MeasuredRun {
  std::string path;       ///< as the user named it: a run directory or a .maki file
  CheckpointState state;  ///< of the last checkpoint, else of the newest that is not damaged, or of the file
  RunHistory history;     ///< empty for a .maki file
  std::optional<BestPointer> best;
  std::vector<std::string> sources;  ///< of its text; none if its configuration names none, or cannot be read
};
/// Throws what read_checkpoint() throws, which says on stderr where another checkpoint takes the place of a damaged
/// one.
std::vector<MeasuredRun> read_measured_runs(const std::vector<std::string>& paths);

/// The share of the validation text that the loss of the best checkpoint covers, if there is one and that is recorded.
std::optional<double> share_of_best(const MeasuredRun& run);
/// The lowest validation loss of a run, or why there is none; its time. Empty for a .maki file.
std::string best_of(const MeasuredRun& run, const PageLanguage& say);
std::string time_of(const MeasuredRun& run);

/// Runs side by side: tables whose rows have a name, and a text about each run.
struct Comparison {
  std::vector<TableRow> results;           ///< the paths, which have no name, and what the runs reached
  std::vector<TableRow> different, equal;  ///< the text and the training fields
};
Comparison compare(const std::vector<MeasuredRun>& runs, const PageLanguage& say);

}  // namespace maki
