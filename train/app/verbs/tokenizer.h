// What the verbs know about tokenizers and token files.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/dataset/token_file.h"
#include "data/tokenizer/tokenizer.h"
#include "train/app/report.h"

namespace maki {

/// The tokenizer of a run directory (of its best checkpoint, else the last) or of a .maki file; else that of
/// read_tokenizer(). Of a model that translates with two vocabularies it is that of the targets, which is said on
/// stderr, or with `of_sources`, which only some verbs can set, that of the sources. Throws CheckpointError or Error
/// for a checkpoint that cannot be read or found, Error if there is only one vocabulary and `of_sources` is set, and
/// what read_tokenizer() throws.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, std::optional<bool> of_sources = {});

/// Adds the facts about a token file with this tokenizer.
void add_token_facts(const TokenFileFacts& facts, const Tokenizer& tokenizer, Report& report);

}  // namespace maki
