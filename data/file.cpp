#include "data/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "data/error.h"

namespace maki {
namespace {

namespace fs = std::filesystem;

std::string read_all(int descriptor, const std::string& name, std::size_t size_hint) {
  std::string bytes;
  bytes.reserve(size_hint);
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t n = read(descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    const int error = n < 0 ? errno : 0;
    if (n <= 0 && descriptor != STDIN_FILENO) close(descriptor);
    check<CorpusError>(n >= 0, "{}: cannot be read: {}", name, std::strerror(error));
    if (n == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  check<CorpusError>(descriptor >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))) {
    close(descriptor);
    fail<CorpusError>("{}: is a {}; a file is needed here", path, S_ISDIR(status.st_mode) ? "directory" : "device");
  }
  return read_all(descriptor, path, static_cast<std::size_t>(status.st_size));
}

std::string read_standard_input() { return read_all(STDIN_FILENO, "standard input", 0); }

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error, leads_nowhere;
  fs::path path = directory;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    path = at->path();
    const bool hidden = path.filename().string().starts_with(".");
    if (hidden) at.disable_recursion_pending();
    if (!hidden && at->is_regular_file(leads_nowhere)) files.push_back(path.string());
  }
  check<CorpusError>(!error, "{}: cannot be listed: {}", path.string(), error.message());
  check<CorpusError>(!files.empty(), "{}: holds no files; give a directory with text files in it", directory);
  std::ranges::sort(files);
  return files;
}

}  // namespace maki
