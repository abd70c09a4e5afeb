// The commit protocol: whichever call fails in whatever way, either the old or the new file exists and is intact, and a
// reported success is a real one.
#include "data/io/file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <vector>

#include "data/io/error.h"
#include "data/io/file.h"
#include "tests/files.h"
#include "tests/train/faulty_file_system.h"

using namespace maki;
using namespace maki::tests;

namespace {

const std::string kOld = "what was there before", kNew = std::string(3000, 'n') + "what comes";

void commit(FileSystem& fs, const std::string& path, const std::string& text) {
  replace_file_atomically(fs, path, {text_bytes(text).first(7), text_bytes(text).subspan(7)});
}

int calls_of_a_commit() {
  const TemporaryFolder folder;
  Faulty fs;
  commit(fs, folder / "file", kNew);
  return static_cast<int>(fs.calls.size());
}

}  // namespace

TEST_CASE("a commit writes, syncs, reads back, renames and syncs the directory, in this order") {
  const TemporaryFolder folder;
  Faulty fs;
  commit(fs, folder / "file", kNew);
  REQUIRE(read_bytes(folder / "file") == kNew);
  std::vector<std::string> order;
  for (const std::string& call : fs.calls) {
    if (order.empty() || order.back() != call) order.push_back(call);
  }
  REQUIRE(order == std::vector<std::string>{"unlink", "open", "write", "fsync", "close", "open", "read", "close",
                                            "rename", "open directory", "fsync", "close"});
}

TEST_CASE("any call that fails leaves the old file, no temporary one, and gives an error with path and reason") {
  const int calls = calls_of_a_commit();
  REQUIRE(calls > 8);
  int refused = 0;
  for (const int error : {ENOSPC, EDQUOT, EIO, EROFS, EFBIG}) {
    for (int at = 0; at < calls; ++at) {
      const TemporaryFolder folder;
      const std::string path = folder / "file";
      write_bytes(path, kOld);
      Faulty fs;
      fs.kind = Faulty::Kind::error;
      fs.at = at;
      fs.error = error;
      const std::string said = error_message<CheckpointError>([&] { commit(fs, path, kNew); });
      const std::string call = fs.calls.at(static_cast<std::size_t>(at));
      INFO("call " << at << ", " << call << ": " << std::strerror(error) << "; said: " << said);
      REQUIRE_FALSE(std::filesystem::exists(path + ".tmp"));
      const std::string after = read_bytes(path);
      if (said.empty()) {
        // A temporary file need not be there to be removed. Only a descriptor that was read from, or that of the
        // directory, may fail to close without an error.
        REQUIRE((call == "close" || at == 0));
        REQUIRE(after == kNew);
        continue;
      }
      ++refused;
      REQUIRE(contains(said, std::strerror(error)));
      REQUIRE(contains(said, parent_directory(path)));
      const bool renamed = std::ranges::count(fs.calls, "open directory") > 0;
      REQUIRE(after == (renamed ? kNew : kOld));
      REQUIRE(contains(said, path + ": is complete, but may be lost if the power fails") == renamed);
    }
  }
  REQUIRE(refused >= 5 * (calls - 3));
}

TEST_CASE("an interrupted call is repeated and a short write continued") {
  const int calls = calls_of_a_commit();
  int continued = 0;
  for (int at = 0; at < calls; ++at) {
    const TemporaryFolder folder;
    const std::string path = folder / "file";
    write_bytes(path, kOld);
    Faulty fs;
    fs.kind = Faulty::Kind::error;
    fs.at = at;
    fs.error = EINTR;
    const std::string said = error_message<CheckpointError>([&] { commit(fs, path, kNew); });
    const std::string call = fs.calls.at(static_cast<std::size_t>(at));
    INFO(call << ": " << said);
    const bool must_continue = call == "write" || call == "read" || call == "close";
    REQUIRE((said.empty() || !must_continue));
    continued += must_continue;
    REQUIRE_FALSE(std::filesystem::exists(path + ".tmp"));
    if (said.empty()) REQUIRE(read_bytes(path) == kNew);
  }
  REQUIRE(continued >= 5);
  for (const std::size_t most : {std::size_t{1}, std::size_t{5}, std::size_t{512}}) {
    const TemporaryFolder folder;
    Faulty fs;
    fs.max_written = most;
    commit(fs, folder / "file", kNew);
    REQUIRE(read_bytes(folder / "file") == kNew);
  }
}

TEST_CASE("a file that reads back with other bytes is not committed") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_bytes(path, kOld);
  Faulty fs;
  fs.bad_disk = true;
  REQUIRE(contains(error_message<CheckpointError>([&] { commit(fs, path, kNew); }), path));
  REQUIRE(read_bytes(path) == kOld);
  REQUIRE_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_CASE("a process that dies in any call leaves the old file or the new one, and the next commit succeeds") {
  const int calls = calls_of_a_commit();
  int kept = 0, replaced = 0;
  for (int at = 0; at < calls; ++at) {
    const TemporaryFolder folder;
    const std::string path = folder / "file";
    write_bytes(path, kOld);
    Faulty fs;
    fs.kind = Faulty::Kind::crash;
    fs.at = at;
    try {
      commit(fs, path, kNew);
    } catch (const Crash&) {
    } catch (const CheckpointError&) {
    }
    INFO("call " << at << ", " << fs.calls.back());
    const std::string after = read_bytes(path);
    REQUIRE((after == kOld || after == kNew));
    (after == kOld ? kept : replaced) += 1;
    commit(posix_file_system(), path, kNew + "!");
    REQUIRE(read_bytes(path) == kNew + "!");
    REQUIRE_FALSE(std::filesystem::exists(path + ".tmp"));
  }
  REQUIRE(kept > 0);
  REQUIRE(replaced > 0);
}

TEST_CASE("after an error of any kind there is no temporary file") {
  const int calls = calls_of_a_commit();
  int thrown = 0;
  for (int at = 0; at < calls; ++at) {
    const TemporaryFolder folder;
    const std::string path = folder / "file";
    write_bytes(path, kOld);
    Faulty fs;
    fs.kind = Faulty::Kind::no_memory;
    fs.at = at;
    try {
      commit(fs, path, kNew);
    } catch (const std::bad_alloc&) {
      ++thrown;
    }
    INFO("call " << at << ", " << fs.calls.at(static_cast<std::size_t>(at)));
    REQUIRE_FALSE(std::filesystem::exists(path + ".tmp"));
    const std::string after = read_bytes(path);
    REQUIRE((after == kOld || after == kNew));
  }
  REQUIRE(thrown >= 8);
}

TEST_CASE("a link with the name of the temporary file is not followed") {
  const TemporaryFolder folder;
  const std::string victim = folder.write("victim", "precious");
  std::filesystem::create_symlink(victim, folder / "file.tmp");
  commit(posix_file_system(), folder / "file", kNew);
  REQUIRE(read_bytes(victim) == "precious");
  REQUIRE(read_bytes(folder / "file") == kNew);
  REQUIRE_FALSE(std::filesystem::is_symlink(folder / "file"));
}

TEST_CASE("a missing folder, and a folder that has the name of the file, are rejected") {
  const TemporaryFolder folder;
  REQUIRE(contains(error_message<CheckpointError>([&] { commit(posix_file_system(), folder / "none/file", kNew); }),
                   "none/file"));
  std::filesystem::create_directory(folder / "place");
  REQUIRE(
      contains(error_message<CheckpointError>([&] { commit(posix_file_system(), folder / "place", kNew); }), "place"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "place.tmp"));
  REQUIRE(contains(error_message<CheckpointError>([&] { read_file_limited(posix_file_system(), folder / "none", 1); }),
                   "No such file"));
}

TEST_CASE("the error of a failed commit mentions the previous file only if there was one") {
  const TemporaryFolder folder;
  Faulty fs;
  fs.kind = Faulty::Kind::error;
  fs.at = 2;  // the first write
  fs.error = ENOSPC;
  const std::string first = error_message<CheckpointError>([&] { commit(fs, folder / "file", kNew); });
  REQUIRE(contains(first, "No space left"));
  REQUIRE_FALSE(contains(first, "intact"));
  write_bytes(folder / "file", kOld);
  fs.calls.clear();
  REQUIRE(
      contains(error_message<CheckpointError>([&] { commit(fs, folder / "file", kNew); }), "previous file is intact"));
  REQUIRE(read_bytes(folder / "file") == kOld);
}

TEST_CASE("files are read whole, whatever their size") {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 65535u, 65536u, 65537u, 200000u}) {
    std::string bytes(size, 'x');
    if (size > 0) bytes.back() = '\0';
    write_bytes(folder / "file", bytes);
    REQUIRE(read_file_limited(posix_file_system(), folder / "file", size) == bytes);
    if (size == 0) continue;
    const std::string said =
        error_message<CheckpointError>([&] { read_file_limited(posix_file_system(), folder / "file", size - 1); });
    REQUIRE(contains(said, folder / "file" + ": must have at most"));
  }
}

TEST_CASE("only regular files are read: a pipe is not waited for, and a device is not read for ever") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder / "zeros");
  for (const std::string& path : {folder / "pipe", folder / "zeros", folder.path()}) {
    const std::string said =
        error_message<CheckpointError>([&] { read_file_limited(posix_file_system(), path, SIZE_MAX); });
    REQUIRE(contains(said, path + ": is not a regular file"));
  }
}

TEST_CASE("folders that are made may be used by all whom the umask allows") {
  const TemporaryFolder folder;
  std::vector<std::string> made;
  const mode_t before = umask(027);
  make_directories(posix_file_system(), folder / "a/b", made);
  umask(before);
  REQUIRE(made.size() == 2);
  for (const std::string& path : made)
    REQUIRE(std::filesystem::status(path).permissions() == static_cast<std::filesystem::perms>(0750));
}
