// maki generate RUN --interactive: a text for every prompt that a user types.
#pragma once

#include <string>

#include "train/cli/continue_texts.h"
#include "train/loop/loaded_model.h"

namespace maki {

/// Reads a prompt from standard input, continues it as continue_texts() does, and so on until the input ends. A line
/// that ends with a backslash goes on in the next line. The seed of a text is that of the one before plus 1. A prompt
/// that cannot be continued is reported, and the next one is read; Ctrl-C ends a text that is being written. Returns
/// the exit code. `unknown` is the policy for characters that the vocabulary lacks.
int continue_interactively(const LoadedModel& loaded, ContinueTexts how, const std::string& unknown);

}  // namespace maki
