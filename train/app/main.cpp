// The maki program. The only place that turns exceptions into an error message and an exit code.
#include <algorithm>
#include <exception>
#include <fcntl.h>
#include <new>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "train/app/command.h"
#include "train/app/failure.h"
#include "train/app/interrupt.h"
#include "train/app/limit_spinning.h"
#include "train/app/ranks.h"
#include "train/app/report.h"
#include "train/app/verbs.h"

extern char** environ;

namespace {

using namespace maki;

#if defined(__ELF__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The loader calls this before it initialises the shared libraries, because limit_spinning() may start the program once
// more, which would initialise them twice. If a loader does not support this section, main() makes the call.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(int, char**, char**) =
    [](int /*argc*/, char** argv, char** environment) { limit_spinning(argv, environment); };
#endif

// Opens /dev/null for every standard stream that is closed, so that no file opened later gets its descriptor; and in
// the wrong direction, so that what reads or writes it fails, as it does with a closed one.
void fill_standard_streams() {
  constexpr std::pair<int, int> kStreams[] = {
      {STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_RDONLY}};
  for (const auto& [stream, direction] : kStreams) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    if (open("/dev/null", direction) != stream) return;
  }
}

// Each token file of a corpus is open while it is trained on, and large texts have more of them than the usual limit.
void allow_many_files() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Memory can run out in a function that must not throw, as some of the libraries have, and while an error is reported.
std::terminate_handler usual_end = nullptr;
void end_without_memory() {
  const auto tell_and_exit = [] {
    constexpr std::string_view kSentence = "maki: out of memory; use a smaller model, batch or text\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kSentence.data(), kSentence.size());
    _exit(exit_code::kUsage);
  };
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    tell_and_exit();
  } catch (...) {
  }
  // An exception that leaves a function of a library which must not throw is not caught yet.
  if (std::current_exception() == nullptr && std::uncaught_exceptions() > 0) tell_and_exit();
  usual_end();
}

// Tells about the exception that is being handled, and returns the exit code.
int tell_error() {
  try {
    const Failure failure = current_failure();
    if (!failure.sentence.empty()) tell_failure(failure.sentence);
    return failure.exit_code;
  } catch (...) {
    end_without_memory();
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  usual_end = std::set_terminate(end_without_memory);
  ignore_signals_of_writes();
  fill_standard_streams();
  allow_many_files();
  limit_spinning(argv, environ);
  int code = exit_code::kDone;
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (!is_on_ranks(words)) stay_alone();
    install_interrupt_handlers(/*tells=*/!is_follower());
    code = parse_command_line(words)();
    flush_results();
  } catch (...) {
    code = tell_error();
  }
  leave_ranks();
  return code;
}
