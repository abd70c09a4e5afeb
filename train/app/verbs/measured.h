// What the runs of `maki inspect` have measured: the curve of one, a table of its measurements, several side by side.
#pragma once

#include <string>
#include <vector>

#include "train/app/report.h"
#include "train/run/config/config.h"
#include "train/run/history.h"

namespace maki {

/// The training fields, with init_from and phases where there are some.
Json training_json(const Config& config);

/// The losses of a run, drawn for stdout; empty if it has measured too few. `best_possible_loss` as in CheckpointState.
std::string curve_text(const RunHistory& history, double best_possible_loss);

/// The measurements of a run as comma-separated values, one row per step that has some.
std::string measurements_csv(const RunHistory& history);

/// Prints the runs side by side: the training fields in which they differ, what they reached, and the other fields.
/// Each is a run directory or a .maki file. Throws what choose_checkpoint() throws.
void compare_runs(const std::vector<std::string>& runs, bool json);

}  // namespace maki
