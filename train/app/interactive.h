// maki generate RUN --interactive: a text for every prompt that a user types.
#pragma once

#include <string>

#include "train/app/continue_texts.h"
#include "train/run/loaded_model.h"

namespace maki {

/// Reads a prompt from standard input, continues it as continue_texts() does, and so on until the input ends. A line
/// that ends with a backslash goes on in the next line. The seed grows by 1 with each prompt, also after one that
/// cannot be continued, which is reported; then the next one is read. Ctrl-C ends the texts of a prompt that are being
/// written, and the program while it waits for a prompt. SIGTERM and SIGHUP end both. Returns the exit code. Throws
/// CheckpointError and std::system_error as continue_texts() does. `unknown` is the policy for characters that the
/// vocabulary lacks: "error", "skip" or "replace". With `remember`, the model reads before each prompt what has been
/// said so far, as it stands on stdout; the prompt "/clear" makes it forget that.
int continue_interactively(const LoadedModel& loaded, ContinueTexts how, const std::string& unknown, bool remember);

}  // namespace maki
