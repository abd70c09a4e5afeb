// Token files of nanoGPT and llm.c: ids of 2 or 4 bytes, without a tokenizer. docs/formats.md describes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset/token_file.h"

namespace maki {

/// The first number of a checkpoint of llm.c, whose name may end with .bin like that of a token file.
inline constexpr std::int32_t kLlmCModelMagic = 20240326;

/// The files of such a dataset, in their order; `val` is empty if there is no file for validation.
struct ForeignTokenPaths {
  std::vector<std::string> train, val;
  std::vector<std::string> notes = {};  ///< messages for a user: which files are not used as their names say
};
/// What each of these files is for, if the names of all end with .bin and none is a token file of maki; nullopt for
/// other files, and without any. A single file is for training. Of several, the words of their names decide, where a
/// word is letters between other characters: "train" (or "training"), "val" ("valid", "validation") and "test"; if none
/// has such a word, those of their folders do. Files without one are for training, but beside a single file for
/// training for validation. Files for testing validate if no others do, and else are left out; a note says so. If
/// neither names nor folders have such words, the second of two is for validation, and all of more are for training.
/// Throws CorpusError if a name has words for more than one purpose, or if no file is for training.
std::optional<ForeignTokenPaths> foreign_token_paths(const std::vector<std::string>& files);

/// Opens the files and checks that they have the form of one of the formats. Several files for training are one text,
/// which goes on from one to the next, and so are those for validation. The hash of the corpus is that of the bytes
/// of one file with all ids for training, followed by one with those for validation. The other facts that are
/// known are the numbers of tokens; the rest is 0. The ids are not looked at. Throws CorpusError, naming the
/// file, also if files of one text have different formats, or one is a checkpoint of llm.c. Requires: there is a file
/// for training.
std::shared_ptr<const TokenFile> open_foreign_tokens(const ForeignTokenPaths& paths);

/// The token file with the tokenizer that made the ids, and facts about the text; without a file for validation, the
/// last val_fraction of the tokens, rounded, are for validation. Reads all ids. Characters are counted by their first
/// bytes in the tokens, and are at least a quarter of the tokens, as a character has at most four bytes. Throws
/// CorpusError, naming the file, if an id is not one of the tokenizer. Requires: `file` is from open_foreign_tokens().
std::shared_ptr<const TokenFile> with_tokenizer(const TokenFile& file, std::shared_ptr<const Tokenizer> tokenizer,
                                                double val_fraction);

}  // namespace maki
