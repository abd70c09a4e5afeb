// The files to which `maki prepare` writes tokens: its own, and those of nanoGPT and llm.c.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/run/token_file_writer.h"

namespace maki {

/// Throws Error for a format that is not one of token_formats() (prepare.h), and unless `out` is free for what it
/// writes: require_file_place() for maki's own, and for the others require_directory_place() of a directory that
/// contains nothing else.
void require_token_place(const std::string& format, const OutputPath& out);

/// Throws Error unless the format can store all ids of a vocabulary.
void require_ids_fit(const std::string& format, std::int64_t vocab_size);

/// The writer of a format. `out` is a file for maki, and for the others a directory that receives train.bin, val.bin
/// and the tokenizer (kOwnTokenizerFile). The paths of the files are appended to `files`. Throws what
/// require_token_place() and require_ids_fit() throw, and CheckpointError if the files cannot be written. For llm.c,
/// append() throws Error for more than 2^31 − 1 training or validation tokens. If commit() throws, what was there
/// before is intact.
std::unique_ptr<TokenWriter> make_token_writer(FileSystem& fs, const std::string& format, const OutputPath& out,
                                               const Tokenizer& tokenizer, std::vector<std::string>& files);

}  // namespace maki
