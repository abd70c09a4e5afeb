#include "tests/cli/process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

#include "tests/catch.h"

namespace maki::tests {

std::string read_text(const std::string& path) {
  if (std::filesystem::is_character_file(path)) return "";  // reading /dev/full would never end
  return read_bytes(path);
}

std::string text_so_far(const std::string& path) { return std::filesystem::exists(path) ? read_text(path) : ""; }

namespace {

// A named pipe that contains `input` and whose writing end stays open.
class InputPipe {
 public:
  InputPipe(const std::string& path, const std::string& input) {
    if (path.empty()) return;
    if (mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("cannot create a pipe");
    descriptor_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (::write(descriptor_, input.data(), input.size()) < 0) throw std::runtime_error("cannot write to the pipe");
  }
  ~InputPipe() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  InputPipe(const InputPipe&) = delete;
  InputPipe& operator=(const InputPipe&) = delete;

 private:
  int descriptor_ = -1;
};

// A pseudoterminal without echo. A raw one passes bytes on unchanged, another one ends the input at Ctrl-D.
class Terminal {
 public:
  explicit Terminal(int columns, int rows = 0, bool raw = true) {
    if (columns == 0) return;
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0)
      throw std::runtime_error("cannot open a pseudoterminal");
    slave_ = open(path().c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    tcgetattr(slave_, &settings);
    if (raw) cfmakeraw(&settings);
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(slave_, TCSANOW, &settings);
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    ioctl(slave_, TIOCSWINSZ, &size);
  }
  ~Terminal() {
    if (slave_ >= 0) close(slave_);
    if (master_ >= 0) close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::string path() const { return ptsname(master_); }
  void type(const std::string& keys) const {
    if (::write(master_, keys.data(), keys.size()) < 0) throw std::runtime_error("cannot write to the terminal");
  }
  /// Reads what is written to the terminal until every process has closed it.
  std::string read_to_end() {
    if (master_ < 0) return "";
    close(std::exchange(slave_, -1));
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(master_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }

 private:
  int master_ = -1, slave_ = -1;
};

[[noreturn]] void become_maki(const std::vector<std::string>& arguments, const RunOptions& options,
                              const std::string& in, const std::string& out, const std::string& err) {
  dup2(open(in.c_str(), O_RDONLY | O_NOCTTY), STDIN_FILENO);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, 0600), STDERR_FILENO);
  if (options.terminal_columns > 0) setenv("TERM", "xterm", 1);
  if (options.output_is_closed_pipe) {
    int ends[2];
    if (pipe(ends) != 0) _exit(126);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
  }
  alarm(250);  // ends a process that waits forever
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0) _exit(126);
  for (const std::string& variable : options.environment) putenv(const_cast<char*>(variable.c_str()));
  if (options.file_size_limit > 0) {
    const rlimit limit{options.file_size_limit, options.file_size_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (options.ignored_signal > 0) signal(options.ignored_signal, SIG_IGN);
  if (options.memory_limit > 0) {
    const rlimit limit{options.memory_limit, options.memory_limit};
    setrlimit(RLIMIT_AS, &limit);
  }
  std::vector<std::string> command = options.launcher;
  std::istringstream emulator(MAKI_EMULATOR);
  command.insert(command.end(), std::istream_iterator<std::string>(emulator), {});
  command.emplace_back(MAKI_BINARY);
  std::vector<char*> list;
  for (std::string& word : command) list.push_back(word.data());
  for (const std::string& argument : arguments) list.push_back(const_cast<char*>(argument.c_str()));
  list.push_back(nullptr);
  if (options.before_program) options.before_program();
  execvp(list.front(), list.data());
  _exit(127);
}

}  // namespace

Finished run_maki(const std::vector<std::string>& arguments, const RunOptions& options) {
  const TemporaryFolder folder;
  const InputPipe pipe(options.input_stays_open ? folder / "pipe" : "", options.input);
  Terminal terminal(options.terminal_columns, options.terminal_rows);
  const Terminal keyboard(options.typed.empty() ? 0 : 80, /*rows=*/0, /*raw=*/false);
  if (!options.typed.empty()) keyboard.type(options.typed);
  const std::string in = !options.typed.empty()     ? keyboard.path()
                         : options.input_stays_open ? folder / "pipe"
                                                    : folder.write("in", options.input);
  const std::string out = folder / "out", err = folder / "err";
  const bool shows_errors = options.terminal_columns > 0;
  const auto target = [&](bool on_terminal, const std::string& given, const std::string& kept) {
    return on_terminal ? terminal.path() : given.empty() ? kept : given;
  };
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    become_maki(arguments, options, in, target(options.output_to_terminal, options.output_file, out),
                target(shows_errors, options.error_file, err));
  }
  if (options.meanwhile) options.meanwhile(child);
  const std::string shown = terminal.read_to_end();
  int status = 0;
  rusage used = {};
  wait4(child, &status, 0, &used);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, text_so_far(out), shows_errors ? shown : text_so_far(err), std::int64_t{used.ru_maxrss} * 1024,
          used.ru_minflt};
}

RunOptions directory_as_input() {
  return {.before_program = [] { dup2(open("/", O_RDONLY | O_DIRECTORY), STDIN_FILENO); }};
}

bool has_terminals() {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) WARN("skipped: this system has no pseudoterminals (" << std::strerror(errno) << ")");
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

bool has_ended(pid_t process) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

void wait_for_handlers(pid_t process) {
  constexpr unsigned long kInterruptBit = 1ul << (SIGINT - 1);
  for (;;) {
    std::istringstream status(text_so_far("/proc/" + std::to_string(process) + "/status"));
    if (status.str().empty()) return;
    bool maki = false;  // not our fork before execv(), which catches signals, too
    for (std::string line; std::getline(status, line);) {
      maki = maki || line == "Name:\tmaki";
      if (maki && line.starts_with("SigCgt:") && (std::stoul(line.substr(7), nullptr, 16) & kInterruptBit) != 0) return;
      if (line.starts_with("State:\tZ")) return;
    }
    usleep(1000);
  }
}

}  // namespace maki::tests
