// Reading files: whole, with sentences that name the path and the system's reason.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace maki {

/// What is given the bytes of a file, part by part.
using ByteSink = std::function<void(std::string_view)>;

/// All bytes of a regular file or a pipe (which is waited for). Throws CorpusError for anything else: a directory, a
/// device, what is missing or must not be read.
std::string read_file(const std::string& path);
void read_file(const std::string& path, const ByteSink& sink);
/// The same, behind what is in `bytes`, with no copy on the way.
void append_file(const std::string& path, std::string& bytes);
/// All bytes of standard input.
std::string read_standard_input();
void read_standard_input(const ByteSink& sink);
void append_standard_input(std::string& bytes);
/// Of a regular file; 0 for anything else.
std::size_t file_size(const std::string& path);
/// At most the first `most` bytes of a regular file; none of what cannot be read.
std::string read_beginning(const std::string& path, std::size_t most);
bool is_directory(const std::string& path);

}  // namespace maki
