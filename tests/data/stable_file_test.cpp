// Files that are read in parts: what was read is what the file contained when it was opened, or there is an error that
// names the file. And looking at the beginning of a file.
#if defined(__linux__)
#include "data/io/stable_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "data/dataset/token_file.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

bool fstat_fails = false;

}  // namespace

// Takes the place of the system's in this program.
extern "C" int fstat(int descriptor, struct stat* status) noexcept {
  if (!fstat_fails) return static_cast<int>(syscall(SYS_fstat, descriptor, status));
  errno = ESTALE;
  return -1;
}

namespace {

// A file that was last modified long ago, so that a change now has another time whatever the clock's resolution is.
std::string old_file(const TemporaryFolder& folder, const std::string& bytes) {
  std::string path = folder.write("file", bytes);
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  return path;
}

std::string read(const StableFile& file, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  file.read(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void overwrite(const std::string& path, const std::string& bytes) {
  const int file = open(path.c_str(), O_WRONLY);
  REQUIRE(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  close(file);
}

}  // namespace

TEST_CASE("a file that changes while it is read is an error, and one that is replaced or deleted is not") {
  struct Change {
    const char* name;
    std::function<void(const std::string&)> make;
    const char* words;  // of the message; null: none
  };
  const std::vector<Change> changes = {
      {"emptied", [](const std::string& path) { REQUIRE(truncate(path.c_str(), 0) == 0); }, "6 bytes and now has 0"},
      {"shortened", [](const std::string& path) { REQUIRE(truncate(path.c_str(), 5) == 0); }, "6 bytes and now has 5"},
      {"extended", [](const std::string& path) { REQUIRE(truncate(path.c_str(), 7) == 0); }, "6 bytes and now has 7"},
      {"overwritten", [](const std::string& path) { overwrite(path, "ABCDEF"); }, "has been written to"},
      {"overwritten by the same bytes", [](const std::string& path) { overwrite(path, "abcdef"); }, "been written to"},
      {"replaced",
       [](const std::string& path) {
         write_bytes(path + ".new", "ABCDEF");
         std::filesystem::rename(path + ".new", path);
       },
       nullptr},
      {"deleted", [](const std::string& path) { std::filesystem::remove(path); }, nullptr},
      {"renamed", [](const std::string& path) { std::filesystem::rename(path, path + "2"); }, nullptr},
      {"made private", [](const std::string& path) { REQUIRE(chmod(path.c_str(), 0600) == 0); }, nullptr},
  };
  for (const Change& change : changes) {
    const TemporaryFolder folder;
    const std::string path = old_file(folder, "abcdef");
    const StableFile file(path);
    REQUIRE(read(file, 1, 3) == "bcd");
    change.make(path);
    INFO(change.name);
    if (change.words == nullptr) {
      REQUIRE(read(file, 1, 3) == "bcd");
    } else {
      const std::string said = error_message<CorpusError>([&] { read(file, 1, 3); });
      INFO(said);
      REQUIRE(contains(said, path));
      REQUIRE(contains(said, change.words));
    }
  }
}

TEST_CASE("only regular files are read in parts, and a disk that fails is named") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder.path(), folder / "pipe", std::string("/dev/zero")})
    REQUIRE(contains(error_message<CorpusError>([&] { StableFile{path}; }), path + ": is not a regular file"));
  REQUIRE(contains(error_message<CorpusError>([&] { StableFile{folder / "none"}; }), "No such file"));
  const StableFile memory("/proc/self/mem");  // a regular file whose first page cannot be read
  REQUIRE(contains(error_message<CorpusError>([&] { read(memory, 0, 1); }), "/proc/self/mem: cannot be read: "));
}

TEST_CASE("a file whose kind the system cannot tell is not said to be of the wrong kind") {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", "text");
  const StableFile file(path);
  fstat_fails = true;
  const std::string opening = error_message<CorpusError>([&] { StableFile{path}; }),
                    reading = error_message<CorpusError>([&] { read(file, 0, 1); }),
                    whole = error_message<CorpusError>([&] { read_file(path); });
  fstat_fails = false;
  for (const std::string& said : {opening, reading, whole}) {
    INFO(said);
    REQUIRE(contains(said, path + ": cannot be accessed: "));
    REQUIRE(contains(said, std::strerror(ESTALE)));
  }
}

TEST_CASE("looking at the beginning of a file does not open a pipe, whose writer would lose what it writes") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(inotify_add_watch(watch, pipe.c_str(), IN_OPEN) >= 0);
  REQUIRE(read_beginning(pipe, 8).empty());
  REQUIRE_FALSE(is_token_file(pipe));
  char event[512];
  REQUIRE(::read(watch, event, sizeof event) < 0);  // nothing has happened
  close(watch);
}

TEST_CASE("the beginning of a file that cannot be read is an error, not an empty one") {
  const TemporaryFolder folder;
  REQUIRE(read_beginning(folder.write("file", "abcdef"), 4) == "abcd");
  REQUIRE(read_beginning(folder / "file", 9) == "abcdef");
  REQUIRE(read_beginning(folder / "none", 4).empty());
  REQUIRE(read_beginning(folder.path(), 4).empty());
  REQUIRE(contains(error_message<CorpusError>([] { read_beginning("/proc/self/mem", 4); }), "cannot be read: "));
}
#endif
