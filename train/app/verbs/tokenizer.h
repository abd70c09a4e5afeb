// What the verbs know about tokenizers and token files.
#pragma once

#include "data/dataset/token_file.h"
#include "data/tokenizer/tokenizer.h"
#include "train/app/report.h"

namespace maki {

/// Adds the facts about a token file with this tokenizer.
void add_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer, Report& report);

}  // namespace maki
