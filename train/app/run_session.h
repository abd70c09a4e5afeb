// Trains, shows the progress, and prints what to do next.
#pragma once

#include <optional>

#include "train/app/console.h"
#include "train/loop/session.h"
#include "train/run/config/config.h"
#include "train/run/run_directory.h"

namespace maki {

/// Trains and shows the progress. Unless `options` say what stops the session, a signal does. Requires: what Session
/// requires, and a DeferInterrupts object of the caller, without which a signal ends the program before anything is
/// saved. Throws what Session throws.
SessionEnd show_session(const Config& config, Trainer& trainer, const RunDirectory& run, SessionOptions options,
                        std::optional<PlannedRun> plan = std::nullopt);

/// Prints, after a session was interrupted, how to continue the run. Returns the exit code.
int say_how_to_continue(const RunDirectory& run);

/// show_session(), and then what to do next. Returns the exit code: 0, or that of the interrupt. Requires and throws
/// what that does; the message of a DivergedError ends with the command that returns to the last good checkpoint or, if
/// none was saved, with the advice to start a new run, and that of a CorpusError with the command that continues.
int run_session(const Config& config, Trainer& trainer, const RunDirectory& run, SessionOptions options,
                std::optional<PlannedRun> plan = std::nullopt);

}  // namespace maki
