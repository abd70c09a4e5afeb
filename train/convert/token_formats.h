// The files to which `maki prepare` writes tokens: its own, and those of nanoGPT and llm.c.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/run/token_file_writer.h"

namespace maki {

/// The writer of a format (token_formats() in prepare.h). `out` is a file for maki, and for the others a directory that
/// receives train.bin, val.bin and the tokenizer (kOwnTokenizerFile); it is created if it is missing, and remains. The
/// paths of the files are appended to `files`. Throws Error for another format, and if the format cannot express the
/// vocabulary; CheckpointError if the files cannot be written. For llm.c, commit() throws Error for more than 2^31 − 1
/// training or validation tokens. If commit() throws, the files of before are intact; but where one was replaced
/// already, the error says so, and the new file is removed.
std::unique_ptr<TokenWriter> make_token_writer(FileSystem& fs, const std::string& format, const std::string& out,
                                               const Tokenizer& tokenizer, std::vector<std::string>& files);

}  // namespace maki
