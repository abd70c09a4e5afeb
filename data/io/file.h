// Reads whole files. Error messages name the path and the reason that the system gives.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace maki {

/// A callback that receives the bytes of a file in consecutive parts; a part is valid only during the call.
using ByteSink = std::function<void(std::string_view)>;

/// Reads all bytes of a regular file or a named pipe; blocks until a pipe is closed. Throws CorpusError if the path is
/// anything else or cannot be opened or read.
std::string read_file(const std::string& path);
void read_file(const std::string& path, const ByteSink& sink);
/// Appends all bytes of a file to `bytes` without an intermediate copy. Throws what read_file() throws. What was read
/// before an error stays in it.
void append_file(const std::string& path, std::string& bytes);
/// Reads standard input to its end. Throws CorpusError if it cannot be read.
std::string read_standard_input();
void read_standard_input(const ByteSink& sink);
void append_standard_input(std::string& bytes);
/// Size in bytes of a regular file; 0 for anything else.
std::size_t file_size(const std::string& path);
/// The first bytes of a regular file, as many as there are up to `most`; empty for anything else, which is not opened,
/// and for a file that cannot be opened. Throws CorpusError if it cannot be read.
std::string read_beginning(const std::string& path, std::size_t most);
/// Whether the path is a directory or a symbolic link to one; false if it cannot be accessed.
bool is_directory(const std::string& path);

}  // namespace maki
