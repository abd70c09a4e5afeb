// Reads whole files. Error messages name the path and the reason that the system gives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "data/io/error.h"
#include "data/io/file_system.h"

namespace maki {

/// A callback that receives the bytes of a file in consecutive parts; a part is valid only during the call.
using ByteSink = std::function<void(std::string_view)>;

/// Reads all bytes of a regular file or a named pipe, or if the path is "-" of standard input; blocks until a pipe is
/// closed. Throws an error of the given type, otherwise CorpusError, if the path is anything else, cannot be opened or
/// read, or has more than `most` bytes.
std::string read_file(const std::string& path, Thrower error = throw_as<CorpusError>, std::size_t most = SIZE_MAX);
/// All bytes of a regular file. Throws an error of the given type, otherwise CheckpointError, if it is anything else (a
/// pipe is not waited for), cannot be read or has more than `most` bytes.
std::string read_file_limited(FileSystem& fs, const std::string& path, std::size_t most,
                              Thrower error = throw_as<CheckpointError>);
/// Passes all bytes of a file, or if the path is "-" of standard input, to `sink` as they arrive, or appends them to
/// `bytes` without an intermediate copy. Each throws CorpusError as read_file() does; what was read before stays.
void read_input(const std::string& path, const ByteSink& sink);
void append_input(const std::string& path, std::string& bytes);
/// Size in bytes of a regular file; 0 for anything else.
std::size_t file_size(const std::string& path);
/// The first bytes of a regular file, as many as there are up to `most`; empty for anything else, which is not opened,
/// and for a file that cannot be opened. Throws CorpusError if it cannot be read.
std::string read_beginning(const std::string& path, std::size_t most);
/// What a path leads to; not_found if to nothing, as a symbolic link in a circle or a name that is too long. Throws an
/// error of the given type if the system cannot tell.
std::filesystem::file_type file_kind(const std::string& path, Thrower error = throw_as<CorpusError>);
/// Whether the path is a directory or a symbolic link to one. Throws as file_kind() does.
inline bool is_directory(const std::string& path, Thrower error = throw_as<CorpusError>) {
  return file_kind(path, error) == std::filesystem::file_type::directory;
}

/// How the text begins that a clone without git-lfs contains in the place of a large file, which Git LFS keeps
/// elsewhere.
inline constexpr std::string_view kGitLfsPointer = "version https://git-lfs.github.com/spec/v1\n";
/// Throws if a file begins like such a text. Every reader of files calls it, because none could say more than that the
/// file is not what it should be.
void refuse_git_lfs_pointer(std::string_view beginning, const std::string& path, Thrower error);

}  // namespace maki
