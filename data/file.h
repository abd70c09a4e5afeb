// Reading files: whole, with sentences that name the path and the system's reason.
#pragma once

#include <string>
#include <vector>

namespace maki {

/// All bytes of a regular file or a pipe (which is waited for). Throws CorpusError for anything else: a directory, a
/// device, what is missing or must not be read.
std::string read_file(const std::string& path);
/// All bytes of standard input.
std::string read_standard_input();
/// The regular files below a directory, at any depth, and links to such files, sorted by the bytes of their paths. What
/// is hidden (".…"), a link to a directory (so that no loop is followed) or leads nowhere is left out. Throws
/// CorpusError when there is none.
std::vector<std::string> files_below(const std::string& directory);
bool is_directory(const std::string& path);

}  // namespace maki
