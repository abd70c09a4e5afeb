#include "data/io/file.h"

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/descriptor.h"

namespace maki {
namespace {

void read_all(Descriptor& file, const ByteSink& sink, Thrower error) {
  std::array<char, 1 << 16> buffer;
  for (bool first = true;; first = false) {
    const std::size_t n = file.read(std::as_writable_bytes(std::span(buffer)));
    if (n == 0) return;
    const std::string_view part(buffer.data(), n);
    if (first) refuse_git_lfs_pointer(part, file.path(), error);
    sink(part);
  }
}

// Appends a file. Memory for a whole regular file is reserved, so that nothing is reallocated unless it grows
// meanwhile.
void append_all(Descriptor& file, std::string& bytes, Thrower error, std::size_t most = SIZE_MAX) {
  const struct stat status = file.status();
  const std::size_t size = S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0;
  if (size > most) error(fmt::format("{}: must have at most {} bytes; got {}", file.path(), most, size));
  if (bytes.size() + size > bytes.capacity()) bytes.reserve(bytes.size() + size);
  const auto append = [&](std::string_view part) {
    bytes += part;
    if (bytes.size() > most) error(fmt::format("{}: must have at most {} bytes, but is larger", file.path(), most));
  };
  read_all(file, append, error);
}

// A regular file or named pipe.
Descriptor open_file(const std::string& path, Thrower error) {
  Descriptor file(posix_file_system(), path, O_RDONLY | O_NOCTTY, error);
  const mode_t mode = file.status().st_mode;
  if (!S_ISREG(mode) && !S_ISFIFO(mode))
    error(fmt::format("{}: must be a file; it is a {}", path, S_ISDIR(mode) ? "directory" : "device"));
  return file;
}

Descriptor open_input(const std::string& path, Thrower error = throw_as<CorpusError>) {
  if (path != "-") return open_file(path, error);
  const Descriptor::Opened copy{fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)};  // with the same position
  return {posix_file_system(), "standard input", copy, error};
}

}  // namespace

std::string read_file(const std::string& path, Thrower error, std::size_t most) {
  Descriptor file = open_input(path, error);
  std::string bytes;
  append_all(file, bytes, error, most);
  return bytes;
}

std::string read_file_limited(FileSystem& fs, const std::string& path, std::size_t most, Thrower error) {
  Descriptor file = open_regular(fs, path, error);
  std::string bytes;
  append_all(file, bytes, error, most);
  return bytes;
}

void read_input(const std::string& path, const ByteSink& sink) {
  Descriptor file = open_input(path);
  read_all(file, sink, throw_as<CorpusError>);
}

void append_input(const std::string& path, std::string& bytes) {
  Descriptor file = open_input(path);
  append_all(file, bytes, throw_as<CorpusError>);
}

std::size_t file_size(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0;
}

std::filesystem::file_type file_kind(const std::string& path, Thrower error) {
  std::error_code reason;
  const std::filesystem::file_type kind = std::filesystem::status(path, reason).type();
  if (reason == std::errc::too_many_symbolic_link_levels || reason == std::errc::filename_too_long)
    return std::filesystem::file_type::not_found;
  if (kind == std::filesystem::file_type::none)
    error(fmt::format("{}: cannot be accessed: {}", path, reason.message()));
  return kind;
}

std::string read_beginning(const std::string& path, std::size_t most) {
  struct stat status {};
  // Not by opening it: the writer of a named pipe would then write to nobody.
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const int opened = posix_file_system().open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
  if (opened < 0) return {};
  const Descriptor file(posix_file_system(), path, Descriptor::Opened{opened}, throw_as<CorpusError>);
  std::string bytes(most, '\0');
  bytes.resize(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

void refuse_git_lfs_pointer(std::string_view beginning, const std::string& path, Thrower error) {
  if (!beginning.starts_with(kGitLfsPointer)) return;
  error(path + ": is a pointer that Git LFS left in place of the file; fetch the file itself with: git lfs pull");
}

}  // namespace maki
