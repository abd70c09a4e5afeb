// What is written to stderr, as to a file or to a terminal.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tests/files.h"

namespace maki::tests {

/// What is written to stderr meanwhile, which is no terminal: it counts as one of 80 columns.
inline std::string written_to_stderr(const std::function<void()>& meanwhile) {
  const TemporaryFolder folder;
  const std::string log = folder / "log";
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  REQUIRE(std::freopen(log.c_str(), "w", stderr) != nullptr);
  meanwhile();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  return read_bytes(log);
}

/// Gives the terminal behind a descriptor this size.
inline void set_terminal_size(int descriptor, int columns, int rows) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  ioctl(descriptor, TIOCSWINSZ, &size);
}

/// What is written to stderr meanwhile, which is a terminal of this size: at most a few thousand bytes. nullopt, with a
/// warning, if this system has no pseudoterminals.
inline std::optional<std::string> written_to_terminal(int columns, int rows, const std::function<void()>& meanwhile) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) {
    WARN("skipped: this system has no pseudoterminals (" << std::strerror(errno) << ")");
    return std::nullopt;
  }
  REQUIRE((grantpt(master) == 0 && unlockpt(master) == 0));
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(slave >= 0);
  termios settings{};
  tcgetattr(slave, &settings);
  cfmakeraw(&settings);
  tcsetattr(slave, TCSANOW, &settings);
  set_terminal_size(slave, columns, rows);
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(slave, STDERR_FILENO);
  close(slave);
  meanwhile();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(master, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(master);
  return text;
}

}  // namespace maki::tests
