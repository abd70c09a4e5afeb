// Trains, shows the progress, and prints what to do next.
#pragma once

#include <optional>

#include "train/app/console.h"
#include "train/loop/session.h"
#include "train/run/config/config.h"
#include "train/run/run_directory.h"

namespace maki {

/// Sets what can stop the session in `options`. Requires: what Session requires, and a DeferInterrupts object of the
/// caller, without which a signal ends the program before anything is saved. Returns the exit code: 0, or that of the
/// interrupt. Throws what Session throws; the message of a DivergedError ends with the command that returns to the last
/// good checkpoint or, if none was saved, with the advice to start a new run.
int run_session(const Config& config, Trainer& trainer, const RunDirectory& run, SessionOptions options,
                std::optional<PlannedRun> plan = std::nullopt);

}  // namespace maki
