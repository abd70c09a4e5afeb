// What the verbs below `maki tokenizer` share.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer/tokenizer.h"
#include "train/cli/verbs.h"

namespace maki {

/// The tokenizer of a run directory or .maki file (of a model that translates, that of the targets), else that of
/// read_tokenizer().
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path);

void add_tokenizer_train(const Command& tokenizer);
void add_tokenizer_encode(const Command& tokenizer);
void add_tokenizer_decode(const Command& tokenizer);

}  // namespace maki
