// Token files of nanoGPT and llm.c: ids of 2 or 4 bytes, without a tokenizer. docs/formats.md describes them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/token_file.h"

namespace maki {

/// The files of such a dataset, in their order; `val` is empty if there is no file for validation.
struct ForeignTokenPaths {
  std::vector<std::string> train, val;
};
/// What each of these files is for, if the names of all end with .bin and none is a token file of maki: the second of
/// two files is for validation unless the names of both contain "train"; of three files or more, those whose names
/// contain "val" are. nullopt for other files.
std::optional<ForeignTokenPaths> foreign_token_paths(const std::vector<std::string>& files);

/// Maps the files and checks that they have the form of one of the formats. Several files are one text, which goes on
/// from one to the next. The hash of the corpus is that of their ids, and the same for one file with all of them.
/// Throws CorpusError, naming the file, also if some have ids of another width.
std::shared_ptr<const TokenFile> open_foreign_tokens(const ForeignTokenPaths& paths);

/// The same with the tokenizer that made the ids, and facts about the text; of a single file, the last val_fraction of
/// the tokens are for validation. Reads all ids. Throws CorpusError, naming the file, if an id is not one of the
/// tokenizer. Requires: `file` is from open_foreign_tokens().
std::shared_ptr<const TokenFile> with_tokenizer(const TokenFile& file, std::shared_ptr<const Tokenizer> tokenizer,
                                                double val_fraction);

}  // namespace maki
