#include "tests/fuzz/fuzz.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/ranges.h>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>

#include "autograd/core/storage.h"
#include "tests/data/allocations.h"

namespace maki::fuzz {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "maki-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create a temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The memory of operator new and that of tensors, which is not among it, since a time. They need not have been largest
// at the same time, so the sum of their peaks is at least what was held.
class Held {
 public:
  Held() {
    tests::start_peak();
    storage_pool::reset_peak();
  }
  std::int64_t peak_bytes() const {
    return tests::peak_bytes() + storage_pool::statistics().peak_bytes - tensors_before_;
  }

 private:
  std::int64_t tensors_before_ = storage_pool::statistics().bytes_in_use;
};

void check_memory(const Target& target, std::size_t size, const Held& memory) {
  constexpr std::int64_t kPerByte = 8, kFixed = 16 << 20;
  const std::int64_t most = kPerByte * static_cast<std::int64_t>(size) + kFixed, held = memory.peak_bytes();
  if (held > most)
    throw std::logic_error(
        fmt::format("{}: a file of {} bytes may need {} bytes of memory; it needed {}", target.name, size, most, held));
}

}  // namespace

Outcome try_input(const Target& target, const std::string& bytes) {
  constexpr std::size_t kMostMessage = 2000;
  Outcome outcome = Outcome::accepted;
  const Held memory;
  try {
    target.read(bytes);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (!target.expects(error) || message.empty() || message.size() > kMostMessage)
      throw std::logic_error(fmt::format("{}: unexpected error: {}", target.name, message));
    outcome = Outcome::rejected;
  } catch (const std::exception& error) {
    throw std::logic_error(fmt::format("{}: not an error of maki: {}", target.name, error.what()));
  }
  check_memory(target, bytes.size(), memory);
  return outcome;
}

const std::string& scratch_folder() {
  static const Folder folder;
  return folder.path();
}

std::string scratch_file(const std::string& name, std::string_view bytes) {
  std::string path = scratch_folder() + "/" + name;
  fs::remove(path);  // some file systems flush a file that is truncated and written again, which takes milliseconds
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (!file) throw std::logic_error("cannot write " + path);
  return path;
}

void remove_scratch_file(const std::string& name) { fs::remove(scratch_folder() + "/" + name); }

std::string source_file(const std::string& path) {
  std::ifstream file(std::string(MAKI_SOURCE_DIR) + "/" + path, std::ios::binary);
  if (!file) throw std::logic_error("cannot read " + path);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::vector<std::string> split_input(std::string_view bytes, std::size_t most) {
  std::vector<std::string> files;
  while (files.size() + 1 < most) {
    const std::size_t end = bytes.find(kSeparator);
    files.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + kSeparator.size());
  }
  files.emplace_back(bytes);
  return files;
}

std::string join_input(const std::vector<std::string>& files) {
  return fmt::format("{}", fmt::join(files, kSeparator));
}

}  // namespace maki::fuzz
