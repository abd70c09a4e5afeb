// Reading files: whole, with sentences that name the path and the system's reason.
#pragma once

#include <string>
#include <vector>

namespace maki {

/// All bytes of a regular file or a pipe. Throws CorpusError.
std::string read_file(const std::string& path);
/// All bytes of standard input.
std::string read_standard_input();
/// The regular files below a directory, at any depth, sorted by the bytes of their paths; hidden ones (".…") and links
/// to directories are left out, so no loop is followed. Throws CorpusError when there is none.
std::vector<std::string> files_below(const std::string& directory);
bool is_directory(const std::string& path);

}  // namespace maki
