// Tokens in several files that are read as one dataset. Nothing is copied.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/token_file.h"

namespace maki {

/// The token files that these sources denote, maki's own or those of other programs: the sources themselves, or for a
/// single directory all its visible entries, in byte order of their names, if each is a file that is a token file of
/// maki or has a name that ends with .bin; beside them may be their tokenizer (kOwnTokenizerFile, kNanoGptMetaFile).
/// (Of a directory with train.bin and val.bin, those two.) nullopt if they denote anything else, such as several
/// directories or a .bin beside another file. Throws CorpusError, naming the file, for token files of maki beside
/// anything else, and for a directory that is not a whole one of tokens but has some of the names in one (train.bin,
/// val.bin, kOwnTokenizerFile). Throws Error without sources, and for a directory with a model, as
/// refuse_hugging_face() does. Files of which only the name counts need not exist.
std::optional<std::vector<std::string>> token_file_paths(const std::vector<std::string>& sources);

/// Opens one token file of maki, or several, in this order: the training tokens of all of them are one part of the
/// dataset, and the validation tokens the other. A piece begins with each file. The hash of the corpus is that of
/// several files' hashes, one after the other; their best possible loss is not known. Throws what open_token_file()
/// throws, and CorpusError unless all files have the same tokenizer and the same fraction of validation text. Requires:
/// there is a path.
std::shared_ptr<const TokenFile> open_token_files(const std::vector<std::string>& paths);

/// Views of parts as one. `file` owns what joins them, but not the parts. A single part is returned as it is. Requires:
/// there is a part.
TokenSpan join_parts(TokenFile& file, std::vector<TokenSpan> parts, TokenChain::Border border);

}  // namespace maki
