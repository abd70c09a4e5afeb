// Changes the environment of the process for a scope: its standard input, its privileges.
#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace maki::tests {

/// Redirects standard input from a file during its lifetime.
class StandardInputFrom {
 public:
  explicit StandardInputFrom(const std::string& path) : before_(dup(STDIN_FILENO)) {
    const int file = open(path.c_str(), O_RDONLY);
    if (before_ < 0 || file < 0 || dup2(file, STDIN_FILENO) < 0)
      throw std::runtime_error("cannot redirect standard input");
    close(file);
  }
  ~StandardInputFrom() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  StandardInputFrom(const StandardInputFrom&) = delete;
  StandardInputFrom& operator=(const StandardInputFrom&) = delete;

 private:
  int before_;
};

/// Gives up the privileges of root during its lifetime, so that file permissions take effect.
class DroppedPrivileges {
 public:
  DroppedPrivileges() : before_(geteuid()) {
    if (before_ == 0 && seteuid(65534) != 0) throw std::runtime_error("cannot drop the privileges of root");
  }
  ~DroppedPrivileges() {
    if (geteuid() != before_ && seteuid(before_) != 0) std::abort();
  }
  DroppedPrivileges(const DroppedPrivileges&) = delete;
  DroppedPrivileges& operator=(const DroppedPrivileges&) = delete;

 private:
  uid_t before_;
};

}  // namespace maki::tests
