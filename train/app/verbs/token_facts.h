// What `maki prepare` and `maki inspect` print about a token file.
#pragma once

#include <string>

#include "data/dataset/token_file.h"
#include "train/app/report.h"

namespace maki {

/// Adds the facts about a token file with this tokenizer.
void add_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer, Report& report);

/// maki inspect FILE, for a token file: prints what it contains to stdout and returns the exit code, 0. Throws
/// CorpusError if it is damaged; only with `verify` is all of it read, so that any damage is found.
int inspect_token_file(const std::string& path, bool verify, bool json);

}  // namespace maki
