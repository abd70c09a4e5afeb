// Token files of nanoGPT and llm.c: ids of 2 or 4 bytes, without a tokenizer. docs/formats.md describes them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/token_file.h"

namespace maki {

/// The files of such a dataset; `val` is empty if there is no file for validation.
struct ForeignTokenPaths {
  std::string train, val;
};
/// The files that these sources denote: a directory with train.bin and val.bin, or one or two files whose names end
/// with .bin, the second one for validation. nullopt if they denote something else, such as text.
std::optional<ForeignTokenPaths> foreign_token_paths(const std::vector<std::string>& sources);

/// Maps the files and checks that they have the form of one of the formats. The hash of the corpus is that of their
/// ids. Throws CorpusError, naming the file.
std::shared_ptr<const TokenFile> open_foreign_tokens(const ForeignTokenPaths& paths);

/// The same with the tokenizer that made the ids, and facts about the text; of a single file, the last val_fraction of
/// the tokens are for validation. Reads all ids. Throws CorpusError, naming the file, if an id is not one of the
/// tokenizer. Requires: `file` is from open_foreign_tokens().
std::shared_ptr<const TokenFile> with_tokenizer(const TokenFile& file, std::shared_ptr<const Tokenizer> tokenizer,
                                                double val_fraction);

}  // namespace maki
