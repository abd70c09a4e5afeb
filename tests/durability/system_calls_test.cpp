// Each system call that a command makes for files fails in every likely way, reads or writes only one byte, or is not
// made because the process is killed. Afterwards each name is that of nothing, of what was there, or of something
// whole; a command that has not done its work says why, with an exit code that is not 0; and it can be repeated, or its
// run be resumed.
//
// The fast tier tries one of these faults at every fifth call. MAKI_SEED=2 draws others; MAKI_EVERY_FAULT=1 tries all.
#if defined(__linux__)
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <random>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/io/file_system.h"
#include "tests/durability/watched_command.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::array kErrors = {EIO, ENOSPC, EDQUOT, EROFS, EINTR, EMFILE, EACCES, ESTALE};

// Whether this system lets a process decide about the calls of another one; an emulator does not.
bool can_supervise() {
  const TemporaryFolder folder;
  Supervisor supervisor(folder.path(), {});
  const pid_t child = fork();
  if (child == 0) _exit(supervisor.submit() ? 0 : 1);
  const bool can = supervisor.supervise(child);
  waitpid(child, nullptr, 0);
  if (!can) WARN("skipped: this system does not let a process supervise the system calls of another one");
  return can;
}

// What becomes of a process that opens the file "a" of a folder and makes a call, which has the fault: what the call
// returns, or -errno; nothing if the process is killed.
std::optional<int> call_with(const CallFault::Kind kind, const TemporaryFolder& folder,
                             const std::function<ssize_t(int file)>& call) {
  folder.write("a", "0123456789");
  Supervisor supervisor(folder.path(), {.kind = kind, .at = 1, .error = ESTALE});
  const pid_t child = fork();
  if (child == 0) {
    if (!supervisor.submit()) _exit(126);
    const int file = open((folder / "a").c_str(), O_RDWR);
    const ssize_t result = call(file);
    _exit(static_cast<int>(result < 0 ? 128 + errno : result));
  }
  REQUIRE(supervisor.supervise(child));
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(supervisor.calls().size() == 2);
  REQUIRE(supervisor.calls()[0].words() == "openat(a)");
  REQUIRE(supervisor.calls()[1].path == "a");
  if (WIFSIGNALED(status)) return std::nullopt;
  return WEXITSTATUS(status) >= 128 ? 128 - WEXITSTATUS(status) : WEXITSTATUS(status);
}

std::string words(const CallFault& fault) {
  switch (fault.kind) {
    case CallFault::Kind::killed:
      return "killed before it";
    case CallFault::Kind::one_byte:
      return "one byte";
    default:
      return std::strerror(fault.error);
  }
}

// The faults to try at a call.
std::vector<CallFault> faults_at(std::size_t at, const SystemCall& call, std::mt19937_64& random) {
  std::vector<CallFault> faults = {{CallFault::Kind::killed, at}};
  if (call.transfers > 1) faults.push_back({CallFault::Kind::one_byte, at});
  for (const int error : kErrors) faults.push_back({CallFault::Kind::error, at, error});
  if (std::getenv("MAKI_EVERY_FAULT") != nullptr) return faults;
  const std::size_t drawn = random() % (5 * faults.size());
  return drawn < faults.size() ? std::vector{faults[drawn]} : std::vector<CallFault>();
}

void try_faults(const WatchedCommand& command) {
  const char* const seed = std::getenv("MAKI_SEED");
  std::mt19937_64 random(seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
  const Course course = course_of(command);
  REQUIRE(course.calls.size() >= 3);
  std::set<Files> found;
  for (std::size_t at = 0; at < course.calls.size(); ++at) {
    for (const CallFault& fault : faults_at(at, course.calls[at], random)) {
      const std::string broken = broken_by(fault, command, course, found);
      INFO(command.name << ", place " << static_cast<int>(command.place) << ", call " << at << ", "
                        << course.calls[at].words() << ": " << words(fault) << ": " << broken);
      REQUIRE(broken.empty());
    }
  }
}

}  // namespace

TEST_CASE("a supervised process asks about each call, and gets the answer that the test wants") {
  if (!can_supervise()) return;
  struct Case {
    std::function<ssize_t(int file)> call;
    std::string after_one_byte;  // of a call that transfers several
  };
  static char buffer[] = "abcd";
  static const std::array<iovec, 2> list = {{{buffer, 0}, {buffer, 4}}};
  const std::vector<Case> cases = {
      {[](int file) { return read(file, buffer, 4) == 1 && buffer[0] == '0' ? 1 : -1; }, "0123456789"},
      {[](int file) { return pread(file, buffer, 4, 3) == 1 && buffer[0] == '3' ? 1 : -1; }, "0123456789"},
      {[](int file) { return readv(file, list.data(), 2); }, "0123456789"},
      {[](int file) { return write(file, buffer, 4); }, "a123456789"},
      {[](int file) { return pwrite(file, buffer, 4, 3); }, "012a456789"},
      {[](int file) { return writev(file, list.data(), 2); }, "a123456789"}};
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO("case " << i);
    REQUIRE(call_with(CallFault::Kind::one_byte, folder, cases[i].call) == 1);
    REQUIRE(read_bytes(folder / "a") == cases[i].after_one_byte);
    REQUIRE(call_with(CallFault::Kind::error, folder, cases[i].call) == -ESTALE);
    REQUIRE_FALSE(call_with(CallFault::Kind::killed, folder, cases[i].call));
    REQUIRE(read_bytes(folder / "a") == "0123456789");
  }
  const auto sync = [](int file) { return fsync(file) == 0 ? 7 : -1; };
  REQUIRE(call_with(CallFault::Kind::none, folder, sync) == 7);
  REQUIRE(call_with(CallFault::Kind::error, folder, sync) == -ESTALE);
}

TEST_CASE("where a file system cannot rename without replacing, a name that exists is refused all the same") {
  if (!can_supervise()) return;
  for (const int unknown : {EINVAL, ENOSYS}) {
    for (const bool exists : {false, true}) {
      const TemporaryFolder folder;
      folder.write("a", "new");
      if (exists) folder.write("b", "old");
      Supervisor supervisor(folder.path(), {.kind = CallFault::Kind::error, .at = 0, .error = unknown});
      const pid_t child = fork();
      if (child == 0) {
        if (!supervisor.submit()) _exit(126);
        _exit(posix_file_system().rename_to_new(folder / "a", folder / "b") == 0 ? 0 : errno);
      }
      REQUIRE(supervisor.supervise(child));
      int status = 0;
      waitpid(child, &status, 0);
      REQUIRE(WEXITSTATUS(status) == (exists ? EEXIST : 0));
      REQUIRE(read_bytes(folder / "b") == (exists ? "old" : "new"));
      REQUIRE(std::filesystem::exists(folder / "a") == exists);
    }
  }
}

TEST_CASE("whichever system call of a new run fails or is its last, nothing is lost and the run can continue") {
  if (can_supervise()) try_faults(training_commands()[0]);
}

TEST_CASE("whichever system call of a resumed run fails or is its last, nothing is lost and the run can continue") {
  if (can_supervise()) try_faults(training_commands()[1]);
}

TEST_CASE("whichever system call of a return to a checkpoint fails or is its last, nothing is lost") {
  if (can_supervise()) try_faults(training_commands()[2]);
}

TEST_CASE("whichever system call of a run that trains its teacher first fails or is its last, nothing is lost") {
  if (can_supervise()) try_faults(training_commands()[3]);
}

TEST_CASE("whichever system call of a command fails or is its last, what it writes is whole or not there") {
  if (!can_supervise()) return;
  for (const WatchedCommand& command : converting_commands()) {
    if (command.place == Place::free) try_faults(command);
  }
}

TEST_CASE("whichever system call of a command fails or is its last, what it replaces is the old or the new") {
  if (!can_supervise()) return;
  for (const WatchedCommand& command : converting_commands()) {
    if (command.place == Place::replaced) try_faults(command);
  }
}

TEST_CASE("whichever system call of a command fails, it replaces nothing without --force and never what it reads") {
  if (!can_supervise()) return;
  for (const WatchedCommand& command : converting_commands()) {
    if (command.must_refuse()) try_faults(command);
  }
}
#endif
