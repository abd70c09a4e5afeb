// What `maki prepare` and `maki inspect` print about a token file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "data/dataset/token_file.h"

namespace maki {

/// The facts as a JSON object, and as lines on stdout; `tokenizer` is that of the file.
nlohmann::ordered_json token_facts_json(const TokenFileFacts& facts, const Tokenizer& tokenizer);
void print_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer);

/// maki inspect FILE, for a token file: prints what it contains to stdout and returns the exit code, 0. Throws
/// CorpusError if it is damaged; only with `verify` is all of it read, so that any damage is found.
int inspect_token_file(const std::string& path, bool verify, bool json);

}  // namespace maki
