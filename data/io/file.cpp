#include "data/io/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/error.h"
#include "data/io/git_lfs.h"

namespace maki {
namespace {

void read_all(int descriptor, const std::string& name, const ByteSink& sink) {
  std::array<char, 1 << 16> buffer;
  for (bool first = true;; first = false) {
    const ssize_t n = read(descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    const int error = n < 0 ? errno : 0;
    check<CorpusError>(n >= 0, "{}: cannot be read: {}", name, std::strerror(error));
    if (n == 0) return;
    const std::string_view part(buffer.data(), static_cast<std::size_t>(n));
    if (first) refuse_git_lfs_pointer<CorpusError>(part, name);
    sink(part);
  }
}

// Reserves memory for a whole regular file, so that appending it does not reallocate (unless the file grows meanwhile).
void reserve_for(int descriptor, std::string& bytes) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const std::size_t size = bytes.size() + static_cast<std::size_t>(status.st_size);
  if (size > bytes.capacity()) bytes.reserve(size);
}

// An open regular file or named pipe.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)) {
    check<CorpusError>(descriptor >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
    struct stat status {};
    const int error = fstat(descriptor, &status) == 0 ? 0 : errno;
    if (error == 0 && (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))) return;
    close(descriptor);
    check<CorpusError>(error == 0, "{}: cannot be accessed: {}", path, std::strerror(error));
    fail<CorpusError>("{}: must be a file; it is a {}", path, S_ISDIR(status.st_mode) ? "directory" : "device");
  }
  ~OpenFile() { close(descriptor); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  const int descriptor;
};

ByteSink appending_to(std::string& bytes) {
  return [&bytes](std::string_view part) { bytes += part; };
}

}  // namespace

void read_file(const std::string& path, const ByteSink& sink) {
  const OpenFile file(path);
  read_all(file.descriptor, path, sink);
}

void append_file(const std::string& path, std::string& bytes) {
  const OpenFile file(path);
  reserve_for(file.descriptor, bytes);
  read_all(file.descriptor, path, appending_to(bytes));
}

std::string read_file(const std::string& path) {
  std::string bytes;
  append_file(path, bytes);
  return bytes;
}

void read_standard_input(const ByteSink& sink) { read_all(STDIN_FILENO, "standard input", sink); }

void append_standard_input(std::string& bytes) {
  reserve_for(STDIN_FILENO, bytes);
  read_standard_input(appending_to(bytes));
}

std::string read_standard_input() {
  std::string bytes;
  append_standard_input(bytes);
  return bytes;
}

std::size_t file_size(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0;
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string read_beginning(const std::string& path, std::size_t most) {
  struct stat status {};
  // Not by opening it: the writer of a named pipe would then write to nobody.
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return {};
  std::string bytes(most, '\0');
  std::size_t filled = 0;
  ssize_t n = 1;
  while (n != 0 && filled < most) {
    n = pread(descriptor, bytes.data() + filled, most - filled, static_cast<off_t>(filled));
    if (n < 0 && errno != EINTR) break;
    filled += static_cast<std::size_t>(std::max<ssize_t>(0, n));
  }
  const int error = errno;
  close(descriptor);
  check<CorpusError>(n >= 0, "{}: cannot be read: {}", path, std::strerror(error));
  bytes.resize(filled);
  return bytes;
}

}  // namespace maki
