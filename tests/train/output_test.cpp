// What commands write: never over something that was not to be replaced, and complete or not there at all, whatever
// fails.
#include "data/io/output.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/io/atomic_file.h"
#include "data/io/error.h"
#include "tests/data/process_scopes.h"
#include "tests/files.h"
#include "tests/train/faulty_file_system.h"
#include "train/run/run_directory.h"

using namespace maki;
using namespace maki::tests;

namespace {

namespace stdfs = std::filesystem;

const std::string kOldBytes = "what was there before", kNewBytes = std::string(3000, 'n') + "what comes";

// Every file and directory in a folder, with the bytes of the files.
std::set<std::string> contents(const std::string& folder) {
  std::set<std::string> all;
  for (const auto& entry : stdfs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    all.insert(entry.is_regular_file() ? name + ": " + read_bytes(entry.path().string()) : name);
  }
  return all;
}

void write(FileSystem& fs, const OutputPath& out, const std::string& text = kNewBytes) {
  write_output(fs, out, {text_bytes(text).first(7), text_bytes(text).subspan(7)});
}

OutputPath with_companion(const std::string& path, bool force = false) {
  OutputPath out(path, force);
  out.companion = {".tokenizer", "its text"};
  return out;
}

void write_directory(FileSystem& fs, const OutputPath& out) {
  OutputDirectory directory(fs, out);
  directory.fill([&] {
    write(fs, directory.path() + "/a");
    write(fs, directory.path() + "/b", "another");
  });
  directory.commit();
}

using Before = std::function<void(const TemporaryFolder&)>;
using WritingAction = std::function<void(FileSystem&, const TemporaryFolder&)>;

// Lets every call of `action` fail in turn, in one way. Afterwards the folder must have what it had before or, without
// an error or with one that says so, what it has after a success. Returns how often there was an error.
int failures(const Before& before, const WritingAction& action, Faulty::Kind kind, int error) {
  const TemporaryFolder good;
  before(good);
  Faulty counted;
  counted.waits = false;
  action(counted, good);
  const std::set<std::string> success = contents(good.path());
  int failed = 0;
  for (int at = 0; at < static_cast<int>(counted.calls.size()); ++at) {
    const TemporaryFolder folder;
    before(folder);
    const std::set<std::string> old = contents(folder.path());
    Faulty fs;
    fs.waits = false;
    fs.kind = kind;
    fs.at = at;
    fs.error = error;
    std::string said;
    try {
      action(fs, folder);
    } catch (const CheckpointError& thrown) {
      said = thrown.what();
    } catch (const std::bad_alloc&) {
      said = "no memory";
    }
    const std::string call = fs.calls.at(static_cast<std::size_t>(at));
    INFO("call " << at << ", " << call << ", error " << error << ": " << said);
    if (call == "unlink" || call == "rmdir") continue;  // something cannot be removed
    failed += !said.empty();
    REQUIRE_FALSE(contains(said, ".tmp"));
    const std::set<std::string> after = contents(folder.path());
    const bool placed = std::ranges::count(fs.calls, "rename") + std::ranges::count(fs.calls, "exchange") ==
                        std::ranges::count(counted.calls, "rename") + std::ranges::count(counted.calls, "exchange");
    const bool complete = contains(said, "is complete") && placed;
    if (kind == Faulty::Kind::error) REQUIRE(after == (said.empty() || complete ? success : old));
    if (kind == Faulty::Kind::no_memory) REQUIRE((after == old || after == success));
    if (said.empty()) REQUIRE(after == success);
  }
  return failed;
}

// With each error there must be so many failures, together with those for which there was no memory.
void try_every_fault(const Before& before, const WritingAction& action, int least) {
  const int without_memory = failures(before, action, Faulty::Kind::no_memory, 0);
  for (const int error : {ENOSPC, EDQUOT, EIO, EROFS, EFBIG}) {
    INFO(std::strerror(error));
    REQUIRE(failures(before, action, Faulty::Kind::error, error) + without_memory >= least);
  }
}

}  // namespace

TEST_CASE("an output is new, or with force replaces a regular file that is no input") {
  const TemporaryFolder folder;
  const std::string text = folder.write("d/text", kOldBytes), other = folder.write("other", kOldBytes);
  stdfs::create_hard_link(text, folder / "hard");
  stdfs::create_symlink(text, folder / "soft");
  stdfs::create_symlink(folder / "none", folder / "dangling");
  const auto refusal = [&](const std::string& path, bool force, const std::string& input) {
    const std::set<std::string> before = contents(folder.path());
    const std::string said = error_message<Error>([&] {
      write(posix_file_system(), {path, force, {"@stories", input}});
    });
    REQUIRE(contents(folder.path()) == before);
    return said;
  };
  REQUIRE_THAT(refusal(other, false, text), ContainsSubstring("exists already") && ContainsSubstring("`force`"));
  for (const bool force : {false, true}) {
    for (const std::string name : {"d/text", "hard", "soft", "d/../d//text"}) {
      for (const std::string& input : {text, folder / "soft", folder / "hard", folder / "d"}) {
        INFO(name << " from " << input);
        REQUIRE_THAT(refusal(folder / name, force, input), ContainsSubstring("is read by this command"));
      }
    }
    REQUIRE_THAT(refusal(folder / "dangling", force, text), ContainsSubstring("leads nowhere"));
    REQUIRE_THAT(refusal(folder / "d", force, text), ContainsSubstring("is a directory"));
    REQUIRE_THAT(refusal("", force, text), ContainsSubstring("must name"));
  }
  {
    const StandardInputFrom standard_input(text);
    REQUIRE_THAT(refusal(folder / "hard", true, "-"), ContainsSubstring("is read by this command"));
    REQUIRE_FALSE(require_file_place({other, true, {"-"}}).is_stream);
  }
  write(posix_file_system(), {folder / "new", false, {text}});
  REQUIRE(read_bytes(folder / "new") == kNewBytes);
  chmod(other.c_str(), 0600);
  write(posix_file_system(), {other, true, {text}});
  REQUIRE(read_bytes(other) == kNewBytes);
  REQUIRE(stdfs::status(other).permissions() == (stdfs::perms::owner_read | stdfs::perms::owner_write));
  write(posix_file_system(), {folder / "soft", true, {other}});
  REQUIRE(stdfs::is_symlink(folder / "soft"));
  REQUIRE(read_bytes(text) == kNewBytes);
  REQUIRE(read_bytes(folder / "hard") == kOldBytes);
}

TEST_CASE("a pipe is written to and stays one, and what needs a file refuses it") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_CLOEXEC);  // does not wait for a writer
  write(posix_file_system(), pipe);
  std::string got(kNewBytes.size(), '\0');
  REQUIRE(read(reader, got.data(), got.size()) == static_cast<ssize_t>(kNewBytes.size()));
  close(reader);
  REQUIRE(got == kNewBytes);
  REQUIRE(stdfs::is_fifo(pipe));
  for (const bool force : {false, true}) {
    REQUIRE_THROWS_AS(write(posix_file_system(), with_companion(pipe, force)), Error);
    REQUIRE_THROWS_AS(AtomicFile(posix_file_system(), {pipe, force}, 0), Error);
    REQUIRE_THROWS_AS(OutputDirectory(posix_file_system(), {pipe, force}), Error);
  }
  REQUIRE(contents(folder.path()) == std::set<std::string>{"pipe"});
}

TEST_CASE("whichever call fails, an output is complete or there is what was there before, and nothing else") {
  const auto nothing = [](const TemporaryFolder&) {};
  const auto file = [](const TemporaryFolder& folder) { folder.write("x", kOldBytes); };
  try_every_fault(
      nothing, [](FileSystem& fs, const TemporaryFolder& folder) { write(fs, folder / "x"); }, 14);
  try_every_fault(
      file,
      [](FileSystem& fs, const TemporaryFolder& folder) {
        write(fs, {folder / "x", true});
      },
      14);
  try_every_fault(
      nothing, [](FileSystem& fs, const TemporaryFolder& folder) { write(fs, with_companion(folder / "x")); }, 28);
  try_every_fault(
      file,
      [](FileSystem& fs, const TemporaryFolder& folder) {
        AtomicFile x(fs, {folder / "x", true}, 4);
        x.append(text_bytes(kNewBytes));
        x.commit(text_bytes("head"));
      },
      14);
  try_every_fault(
      nothing, [](FileSystem& fs, const TemporaryFolder& folder) { write_directory(fs, folder / "p/q/x/"); }, 40);
  try_every_fault(
      nothing, [](FileSystem& fs, const TemporaryFolder& folder) { write(fs, with_companion(folder / "p/q/x")); }, 40);
  try_every_fault(
      nothing,
      [](FileSystem& fs, const TemporaryFolder& folder) {
        AtomicFile x(fs, folder / "p/q/x", 4);
        x.append(text_bytes(kNewBytes));
        x.commit(text_bytes("head"));
      },
      24);
  const auto directory = [](const TemporaryFolder& folder) {
    folder.write("x/a", kOldBytes);
    folder.write("x/b", kOldBytes);
  };
  try_every_fault(
      directory,
      [](FileSystem& fs, const TemporaryFolder& folder) {
        write_directory(fs, {folder / "x", true});
      },
      30);
}

TEST_CASE("what is read back and differs from what was written, anywhere, does not become the output") {
  // The real file system, one of whose reads gives another byte, or one more at the end of the file.
  struct OtherByte final : FileSystem {
    ssize_t read(int file, void* bytes, std::size_t size) override {
      const ssize_t n = FileSystem::read(file, bytes, size);
      if (reads++ != at) return n;
      *static_cast<char*>(bytes) ^= 1;
      return std::max<ssize_t>(1, n);
    }
    int at = 0, reads = 0;
  };
  const std::function<void(FileSystem&, const OutputPath&)> actions[] = {
      [](FileSystem& fs, const OutputPath& out) { write(fs, out); },
      [](FileSystem& fs, const OutputPath& out) {
        AtomicFile file(fs, out, 4);
        file.append(text_bytes(kNewBytes));
        file.commit(text_bytes("head"));
      }};
  for (const auto& action : actions) {
    int at = 0;
    for (;; ++at) {
      const TemporaryFolder folder;
      const std::string x = folder.write("x", kOldBytes);
      OtherByte fs;
      fs.at = at;
      const std::string said = error_message<CheckpointError>([&] { action(fs, {x, true}); });
      if (fs.reads <= at) break;  // there are no more
      INFO("read " << at << ": " << said);
      REQUIRE((contains(said, "differs from what was written") || contains(said, "is longer than what was written")));
      REQUIRE(contents(folder.path()) == std::set<std::string>{"x: " + kOldBytes});
    }
    REQUIRE(at >= 3);
  }
}

TEST_CASE("an error says what could not be removed, and whether there was a file before") {
  struct Stuck final : FileSystem {
    int fsync(int) override {
      errno = ENOSPC;
      return -1;
    }
    int unlink(const std::string&) override {
      errno = EACCES;
      return -1;
    }
  } fs;
  const TemporaryFolder folder;
  const std::string x = folder / "x", end = ".tmp could not be removed";
  folder.write("another", "");  // an empty directory would be made durable first
  for (const bool before : {false, true}) {
    if (before) folder.write("x", kOldBytes);
    const std::string said = error_message<CheckpointError>([&] { write(fs, {x, true}); });
    INFO(said);
    REQUIRE(said.starts_with(x + ": could not be written" + (before ? "; the previous file is intact (" : " (")));
    REQUIRE(contains(said, "fsync failed: No space left on device); " + folder.path() + "/.x."));
    REQUIRE(said.ends_with(end));
  }
  REQUIRE(read_bytes(x) == kOldBytes);
}

TEST_CASE("wherever a process dies, the command can be repeated") {
  for (const bool directory : {false, true}) {
    const auto action = [&](FileSystem& fs, const TemporaryFolder& folder) {
      directory ? write_directory(fs, folder / "x") : write(fs, with_companion(folder / "x"));
    };
    const TemporaryFolder good;
    Faulty counted;
    action(counted, good);
    int died = 0;
    for (int at = 0; at < static_cast<int>(counted.calls.size()); ++at) {
      const TemporaryFolder folder;
      Faulty fs;
      fs.kind = Faulty::Kind::crash;
      fs.at = at;
      try {
        action(fs, folder);
      } catch (const Crash&) {
        ++died;
      } catch (const CheckpointError&) {
      }
      INFO("call " << at << ", " << fs.calls.back());
      if (!stdfs::exists(folder / "x")) action(posix_file_system(), folder);
      for (const std::string& each : contents(good.path())) REQUIRE(contents(folder.path()).contains(each));
      for (const auto& entry : stdfs::directory_iterator(folder.path())) {
        const std::string name = entry.path().filename().string();
        REQUIRE((name.starts_with("x") || (name.starts_with(".x") && name.ends_with(".tmp"))));
      }
    }
    REQUIRE(died >= 12);
  }
}

TEST_CASE("files with the names of others' temporary files are left as they are, and two writers do not mix") {
  const TemporaryFolder folder;
  folder.write("x.tmp", "precious");
  const std::string victim = folder.write("victim", "precious");
  stdfs::create_symlink(victim, folder / "y.tmp");
  write(posix_file_system(), folder / "x");
  write(posix_file_system(), folder / "y");
  REQUIRE(read_bytes(folder / "x.tmp") == "precious");
  REQUIRE(read_bytes(victim) == "precious");
  REQUIRE_FALSE(stdfs::is_symlink(folder / "y"));

  AtomicFile first(posix_file_system(), folder / "z", 0), second(posix_file_system(), folder / "z", 0);
  first.append(text_bytes("first"));
  second.append(text_bytes("the second"));
  first.commit({});
  REQUIRE_THAT(error_message<Error>([&] { second.commit({}); }), ContainsSubstring("made by another process"));
  REQUIRE(read_bytes(folder / "z") == "first");

  const std::string long_name(250, 'n');
  write(posix_file_system(), folder / long_name);
  REQUIRE(read_bytes(folder / long_name) == kNewBytes);
}

TEST_CASE("a directory that another process fills meanwhile is left to it, and whoever chose its name is told") {
  // The real file system, in which another process is faster.
  struct Overtaken final : FileSystem {
    int rename(const std::string& from, const std::string& to) override {
      if (to.ends_with("/x")) write_directory(posix_file_system(), to);
      return FileSystem::rename(from, to);
    }
  } fs;
  const TemporaryFolder folder;
  REQUIRE_THROWS_AS(write_directory(fs, folder / "x"), OccupiedOutput);
  REQUIRE(contents(folder.path()) == std::set<std::string>{"x", "x/a: " + kNewBytes, "x/b: another"});
}

TEST_CASE("a name that is taken is neither written to nor removed") {
  const TemporaryFolder folder;
  const std::string taken = folder.write("taken", "precious");
  stdfs::create_symlink(taken, folder / "link");
  stdfs::create_symlink(folder / "none", folder / "dangling");
  for (const char* const name : {"taken", "link", "dangling"}) {
    Temporary file(posix_file_system(), folder / name), directory(posix_file_system(), folder / name);
    REQUIRE_THROWS_AS(file.write({text_bytes(kNewBytes)}), CheckpointError);
    REQUIRE_THROWS_AS(directory.create_directory_for(folder / name), CheckpointError);
  }
  REQUIRE(contents(folder.path()) == std::set<std::string>{"taken: precious", "link: precious", "dangling"});
}

TEST_CASE("a companion with another text is not replaced without force") {
  const TemporaryFolder folder;
  folder.write("x.tokenizer", "its text");
  write(posix_file_system(), with_companion(folder / "x"));
  folder.write("y.tokenizer", "another");
  REQUIRE_THAT(error_message<Error>([&] { write(posix_file_system(), with_companion(folder / "y")); }),
               ContainsSubstring("y.tokenizer: exists already"));
  REQUIRE_FALSE(stdfs::exists(folder / "y"));
  write(posix_file_system(), with_companion(folder / "y", true));
  REQUIRE(read_bytes(folder / "y.tokenizer") == "its text");
}

TEST_CASE("a directory replaces an empty one, and with force one of the same files that is no input") {
  const TemporaryFolder folder;
  const std::string x = folder / "x";
  stdfs::create_directory(x);
  chmod(x.c_str(), 0700);
  write_directory(posix_file_system(), x);
  REQUIRE(read_bytes(x + "/a") == kNewBytes);
  REQUIRE(stdfs::status(x).permissions() == stdfs::perms::owner_all);
  const auto refusal = [&](const OutputPath& out) {
    const std::set<std::string> before = contents(folder.path());
    const std::string said = error_message<Error>([&] { write_directory(posix_file_system(), out); });
    REQUIRE(contents(folder.path()) == before);
    return said;
  };
  REQUIRE_THAT(refusal(x), ContainsSubstring("is not an empty directory") && ContainsSubstring("`force`"));
  REQUIRE_THAT(refusal({x, true, {x + "/a"}}), ContainsSubstring("contains what this command reads"));
  REQUIRE_THAT(refusal({x, true, {x}}), ContainsSubstring("contains what this command reads"));
  folder.write("x/sub/c", "precious");
  REQUIRE_THAT(refusal({x, true}), ContainsSubstring("contains sub, which this command does not write"));
  stdfs::remove_all(x + "/sub");
  write_bytes(x + "/a", kOldBytes);
  write_directory(posix_file_system(), {x, true});
  REQUIRE(read_bytes(x + "/a") == kNewBytes);
  REQUIRE_THAT(refusal(folder.write("file", kOldBytes)), ContainsSubstring("is not a directory"));
  REQUIRE_THAT(refusal(std::string(".")), ContainsSubstring("is the current directory"));
  REQUIRE_THROWS_WITH(require_directory_place(std::string("//")),
                      ContainsSubstring("//: exists already and is not an empty directory"));
}

TEST_CASE("a signal removes what is under construction, and nothing else") {
  const TemporaryFolder folder;
  folder.write("kept", kOldBytes);
  const pid_t child = fork();
  if (child == 0) {
    OutputDirectory directory(posix_file_system(), folder / "x");
    write(posix_file_system(), directory.path() + "/a");
    stdfs::create_directory(directory.path() + "/deeper");
    stdfs::create_symlink(folder / "kept", directory.path() + "/deeper/link");
    for (int i = 0; i < 100; ++i)  // more than are listed at a time
      write_bytes(directory.path() + "/deeper/" + std::string(100, 'n') + std::to_string(i), "x");
    AtomicFile file(posix_file_system(), folder / "y", 0), inner(posix_file_system(), directory.path() + "/b", 0);
    write(posix_file_system(), folder / "z");
    remove_temporaries();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(contents(folder.path()) == std::set<std::string>{"kept: " + kOldBytes, "z: " + kNewBytes});
}
