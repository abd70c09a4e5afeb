// The tokenizers that a user names.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The tokenizer of a run directory (of its best checkpoint, else the last) or of a .maki file, which of a model that
/// translates is that of the targets; else that of read_tokenizer(). Throws CheckpointError or Error for a checkpoint
/// that cannot be read or found, and what read_tokenizer() throws.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path);

}  // namespace maki
