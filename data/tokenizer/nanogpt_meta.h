// The meta.pkl in which nanoGPT's character-level data sets keep their vocabulary.
#pragma once

#include <memory>
#include <string_view>

#include "data/tokenizer/tokenizer.h"

namespace maki {

/// The name of the file, beside train.bin and val.bin.
inline constexpr const char* kNanoGptMetaFile = "meta.pkl";

/// The character tokenizer that the pickle of a dictionary with the tables itos (from ids to characters) and stoi
/// (back) describes, as nanoGPT's prepare.py writes it. Nothing is executed: only the instructions that build
/// dictionaries of strings and whole numbers are known, and everything else is refused. Throws CorpusError for that,
/// for a pickle that is damaged or above 512 KiB, and if the tables contradict each other or their characters are not
/// in ascending order, which a tokenizer of maki cannot express.
std::unique_ptr<Tokenizer> read_nanogpt_meta(std::string_view pickle);

}  // namespace maki
