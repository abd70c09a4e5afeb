// What `maki prepare` and `maki inspect` print about a token file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "data/dataset/token_file.h"

namespace maki {

nlohmann::ordered_json token_facts_json(const TokenFileFacts& facts, const Tokenizer& tokenizer);
void print_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer);

/// maki inspect FILE, for a token file: returns the exit code. Throws CorpusError if it is damaged; with `verify`, all
/// of it is read.
int inspect_token_file(const std::string& path, bool verify, bool json);

}  // namespace maki
