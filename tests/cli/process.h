// Runs the maki binary as a user would, and keeps what it said.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace maki::tests {

struct Finished {
  int exit_code;  ///< 128 + n for death by signal n
  std::string out, err;
};

struct RunOptions {
  std::string input = {};                     ///< standard input
  bool input_stays_open = false;              ///< more might come behind `input`, but never does
  std::string typed = {};                     ///< in place of `input`: keys pressed at a terminal, "\x04" for Ctrl-D
  int terminal_columns = 0;                   ///< standard error is a terminal of this width; 0: a file
  bool output_to_terminal = false;            ///< standard output is that terminal, too
  std::vector<std::string> environment = {};  ///< "NAME=value", added to ours; "NAME": taken away
  std::function<void(pid_t)> meanwhile = {};  ///< called once the process runs, with its id
  std::string working_directory = {};
  std::string output_file = {}, error_file = {};  ///< in place of what is kept
  bool output_is_closed_pipe = false;             ///< standard output is a pipe that nobody reads
  std::uint64_t file_size_limit = 0;              ///< bytes (RLIMIT_FSIZE); 0: none
  int ignored_signal = 0;                         ///< ignored when the program starts, as nohup does; 0: none
  std::uint64_t memory_limit = 0;                 ///< bytes (RLIMIT_AS); 0: none
};

/// maki with these arguments. Throws when it cannot be started.
Finished run_maki(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// Returns once the process has handlers for SIGINT, and is where it can be interrupted.
void wait_for_handlers(pid_t process);

/// Whether this system has pseudoterminals; a bare chroot has none. Says so where not.
bool has_terminals();

/// A folder of its own for one test, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::string& path);

}  // namespace maki::tests
