// Files for the tests of data: a folder that goes away, and a standard input of one's own.
#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace maki::tests {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "maki-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// The path of a new file; folders on the way are made.
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path);
    return path;
  }

 private:
  std::string path_;
};

/// Standard input comes from a file while this lives.
class InputFrom {
 public:
  explicit InputFrom(const std::string& path) : before_(dup(STDIN_FILENO)) {
    const int file = open(path.c_str(), O_RDONLY);
    if (before_ < 0 || file < 0 || dup2(file, STDIN_FILENO) < 0) throw std::runtime_error("no standard input");
    close(file);
  }
  ~InputFrom() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  InputFrom(const InputFrom&) = delete;
  InputFrom& operator=(const InputFrom&) = delete;

 private:
  int before_;
};

/// Without the rights of root while this lives, so that permissions mean something.
class AsNobody {
 public:
  AsNobody() : before_(geteuid()) {
    if (before_ == 0 && seteuid(65534) != 0) throw std::runtime_error("root cannot be given up");
  }
  ~AsNobody() {
    if (geteuid() != before_ && seteuid(before_) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  uid_t before_;
};

}  // namespace maki::tests
