// A file that cannot be read is not a damaged one: nothing replaces it, and it is neither overwritten nor deleted.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>

#include "data/io/error.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A file system in which one kind of call fails for files whose path contains `part`.
struct FailingReads : Unsynced {
  enum class Call : std::uint8_t { open, fstat, pread, unlink };
  FailingReads(Call call_, int error_, std::string part_) : call(call_), error(error_), part(std::move(part_)) {}

  int open(const std::string& path, int flags, mode_t mode) override {
    const bool matches = contains(path, part);
    if (matches && fails(Call::open)) return -1;
    const int descriptor = FileSystem::open(path, flags, mode);
    if (matches) file = descriptor;
    return descriptor;
  }
  int fstat(int descriptor, struct stat& status) override {
    return descriptor == file && fails(Call::fstat) ? -1 : FileSystem::fstat(descriptor, status);
  }
  ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t offset) override {
    return descriptor == file && fails(Call::pread) ? -1 : FileSystem::pread(descriptor, bytes, size, offset);
  }
  int unlink(const std::string& path) override {
    return contains(path, part) && fails(Call::unlink) ? -1 : FileSystem::unlink(path);
  }

  Call call;
  int error;
  std::string part;

 private:
  bool fails(Call made) const {
    if (made == call) errno = error;
    return made == call;
  }
  int file = -1;
};

enum class ReadVerdict : std::uint8_t { intact, lost, unreadable };

ReadVerdict verdict(const std::string& path, FileSystem& fs = posix_file_system()) {
  try {
    VerifiedCheckpoint{path, fs};
    return ReadVerdict::intact;
  } catch (const CorruptFile&) {
    return ReadVerdict::lost;
  } catch (const CheckpointError&) {
    return ReadVerdict::unreadable;
  }
}

// A run directory with intact checkpoints of the same contents; only names matter here.
struct Checkpoints {
  Checkpoints() {
    run.create();
    for (const std::int64_t step : {10, 20, 30}) {
      write_smallest(run.checkpoint_file(step), [step](CheckpointState& state) { state.step = step; });
    }
    run.set_last(30);
  }
  TemporaryFolder folder;
  RunDirectory run{folder / "run"};
};

}  // namespace

TEST_CASE("a checkpoint that cannot be opened or read is not reported as damaged, whatever the reason") {
  const TemporaryFolder folder;
  const std::string path = write_smallest(folder / "a.maki");
  REQUIRE(verdict(path) == ReadVerdict::intact);
  for (const int error : {EIO, EACCES, EMFILE, ENFILE, ENOMEM, ESTALE, ELOOP}) {
    for (const auto call : {FailingReads::Call::open, FailingReads::Call::fstat, FailingReads::Call::pread}) {
      FailingReads fs(call, error, "a.maki");
      INFO(std::strerror(error) << ", call " << static_cast<int>(call));
      REQUIRE(verdict(path, fs) == ReadVerdict::unreadable);
      REQUIRE(contains(error_message<CheckpointError>([&] { VerifiedCheckpoint{path, fs}; }), std::strerror(error)));
    }
  }
  REQUIRE(verdict(folder / "missing.maki") == ReadVerdict::lost);
  write_bytes(folder / "cut.maki", read_bytes(path).substr(0, 500));
  REQUIRE(verdict(folder / "cut.maki") == ReadVerdict::lost);
  std::filesystem::create_directory(folder / "directory.maki");
  REQUIRE(verdict(folder / "directory.maki") == ReadVerdict::lost);
}

TEST_CASE("a checkpoint of another format version is not reported as damaged") {
  const TemporaryFolder folder;
  std::string bytes = read_bytes(write_smallest(folder / "a.maki"));
  bytes[8] = 2;
  write_bytes(folder / "newer.maki", bytes);
  REQUIRE(verdict(folder / "newer.maki") == ReadVerdict::unreadable);
  REQUIRE(
      contains(error_message<CheckpointError>([&] { VerifiedCheckpoint{folder / "newer.maki"}; }), "format version 2"));
}

TEST_CASE("resuming does not fall back from a checkpoint that cannot be read") {
  const Checkpoints checkpoints;
  FailingReads fs(FailingReads::Call::pread, EIO, "step-00000030");
  const RunDirectory run(checkpoints.run.path(), fs);
  std::vector<std::string> notes;
  const std::string said = error_message<CheckpointError>([&] { newest_intact(run, notes); });
  REQUIRE(contains(said, "step-00000030.maki"));
  REQUIRE(contains(said, std::strerror(EIO)));
  REQUIRE(notes.empty());
  // Once it can be read it is used.
  REQUIRE(newest_intact(checkpoints.run, notes).state().step == 30);
}

TEST_CASE(
    "generate does not fall back from a best that cannot be opened, but does from one that is missing or damaged") {
  const Checkpoints checkpoints;
  const std::string best = checkpoints.run.checkpoint_file(20);
  checkpoints.run.set_best({20, 1.5});
  std::vector<std::string> notes;
  const auto chosen = [&] { return find_checkpoint(checkpoints.run.path(), "", notes); };
  REQUIRE(chosen() == best);
  std::filesystem::rename(best, best + ".away");
  std::filesystem::create_symlink(best, best);  // cannot be opened: too many levels of symbolic links
  REQUIRE(contains(error_message<CheckpointError>(chosen), std::strerror(ELOOP)));
  REQUIRE(notes.empty());
  std::filesystem::remove(best);
  REQUIRE(chosen() == checkpoints.run.checkpoint_file(30));
  write_bytes(best, "damaged");
  REQUIRE(chosen() == checkpoints.run.checkpoint_file(30));
  REQUIRE(notes.size() == 2);
}

TEST_CASE("a file that cannot be deleted is reported, and the others are deleted") {
  const Checkpoints checkpoints;
  FailingReads fs(FailingReads::Call::unlink, EPERM, "step-00000010");
  const RunDirectory run(checkpoints.run.path(), fs);
  const std::vector<std::string> notes = run.prune(1);
  REQUIRE(notes.size() == 1);
  REQUIRE(contains(notes[0], "step-00000010.maki"));
  REQUIRE(contains(notes[0], std::strerror(EPERM)));
  REQUIRE(run.checkpoints() == std::vector<std::int64_t>{10, 30});

  write_bytes(run.checkpoint_file(10) + ".tmp", "torn");
  REQUIRE(run.remove_temporary_files().size() == 1);
  FailingReads pointer(FailingReads::Call::unlink, EIO, "/best");
  run.set_best({30, 1.5});
  const std::string said = error_message<CheckpointError>([&] { RunDirectory(run.path(), pointer).clear_best(); });
  REQUIRE(contains(said, "checkpoints/best"));
}
