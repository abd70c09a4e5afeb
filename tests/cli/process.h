// Runs the maki binary as a user would, and captures its output.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "tests/files.h"

namespace maki::tests {

struct Finished {
  int exit_code;  ///< 128 + n if signal n ended the process
  std::string out, err;
  std::int64_t peak_resident = 0;  ///< bytes, at least those of the process that started maki
  std::int64_t page_faults = 0;    ///< how often a page was mapped that needed no disk
};

struct RunOptions {
  std::string input = {};                     ///< the whole standard input
  bool input_stays_open = false;              ///< standard input does not end after `input`
  std::string typed = {};                     ///< instead of `input`: keys pressed at a terminal, "\x04" for Ctrl-D
  int terminal_columns = 0;                   ///< standard error is a terminal of this width; 0: a file
  int terminal_rows = 0;                      ///< of that terminal; 0: it does not know
  bool output_to_terminal = false;            ///< standard output is that terminal, too
  std::vector<std::string> environment = {};  ///< "NAME=value" is added to ours, "NAME" removed from it
  std::function<void(pid_t)> meanwhile = {};  ///< called with the process id once the process runs
  std::function<void()> before_program = {};  ///< called in that process immediately before it becomes maki
  std::string working_directory = {};
  std::vector<std::string> launcher = {};         ///< a program and its arguments, which starts maki: as mpirun does
  std::string output_file = {}, error_file = {};  ///< receive the output; `out` and `err` are then empty
  bool output_is_closed_pipe = false;             ///< standard output is a pipe whose reader is gone
  std::uint64_t file_size_limit = 0;              ///< in bytes (RLIMIT_FSIZE); 0: none
  int ignored_signal = 0;                         ///< ignored when the program starts, as nohup does; 0: none
  std::uint64_t memory_limit = 0;                 ///< in bytes (RLIMIT_AS); 0: none
};

/// Runs maki with these arguments and waits for its end; after 250 seconds SIGALRM ends it. Throws std::runtime_error
/// if a process, pipe or terminal cannot be made. The exit code is 127 if the binary cannot be executed, 126 if the
/// working directory or the closed pipe cannot be set up. With `terminal_columns`, `err` is what the terminal showed,
/// with standard output if that goes there.
Finished run_maki(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// Standard input is a directory, of which nothing can be read.
RunOptions directory_as_input();

/// Whether a process that `meanwhile` was given has ended. kill(process, 0) does not tell: until run_maki() waits for
/// the process, it can still be sent signals.
bool has_ended(pid_t process);
/// Waits until the process is maki and handles SIGINT, or has ended.
void wait_for_handlers(pid_t process);

/// Whether this system has pseudoterminals (a bare chroot has none). Warns if it has not.
bool has_terminals();

/// The content of a file; empty for a device. Throws std::runtime_error if it cannot be read.
std::string read_text(const std::string& path);
/// The content of a file that another process may not have made yet: empty as long as there is none.
std::string text_so_far(const std::string& path);

}  // namespace maki::tests
