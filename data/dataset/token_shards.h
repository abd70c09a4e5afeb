// Tokens in several files that are read as one dataset. All are mapped into memory, and nothing is copied.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/token_file.h"

namespace maki {

/// The token files that these sources denote, maki's own or those of other programs: the sources themselves, or for a
/// directory all its visible files, in byte order of their names, if each is a token file of maki or has a name that
/// ends with .bin. (Of a directory with train.bin and val.bin, those two.) nullopt if they denote anything else. Throws
/// CorpusError, naming the file, for token files beside other sources.
std::optional<std::vector<std::string>> token_file_paths(const std::vector<std::string>& sources);

/// Maps one token file of maki, or several, in this order: the training tokens of all of them are one part of the
/// dataset, and the validation tokens the other. A piece begins with each file. The hash of the corpus is that of their
/// hashes. Throws what open_token_file() throws, and CorpusError unless all files have the same tokenizer and the same
/// fraction of validation text.
std::shared_ptr<const TokenFile> open_token_files(const std::vector<std::string>& paths);

/// Views of parts as one, which `file` owns.
TokenSpan join_parts(TokenFile& file, std::vector<TokenSpan> parts, TokenChain::Border border);

}  // namespace maki
