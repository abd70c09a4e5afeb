// `maki generate` with a model that reads one sequence and writes another: every line of the input is a source.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "train/loop/translate.h"
#include "train/run/loaded_model.h"

namespace maki {

struct TranslateLines {
  std::string unknown = "error";  ///< the policy for characters that the vocabulary lacks
  bool json = false;
  TranslateOptions options;
};

/// The next lines, at most `most`, without their ends (a newline, or a carriage return and a newline).
std::vector<std::string> read_lines(std::istream& input, std::size_t most);

/// Writes one line to stdout for each line of `input`, in the same order: the translation (an empty line for one
/// without a token) or, with `json`, a JSON object. Input is read in blocks, of one line if `interactive`, and each is
/// answered before the next is read. A signal ends it: the block that is being translated is not answered. Returns the
/// exit code: 0, or that of the signal. Throws CorpusError, which leaves its block unanswered, for a line that is not
/// UTF-8, has unknown characters that the policy does not allow, or is too long for a model with learned positions;
/// Error for an unknown policy; CheckpointError if the model gives logits that are not finite; std::system_error if
/// stdout fails.
int translate_lines(const LoadedModel& loaded, std::istream& input, bool interactive, const TranslateLines& how);

}  // namespace maki
