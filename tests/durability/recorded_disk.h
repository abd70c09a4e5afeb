// A file system that records its calls, and what a disk may hold of them if the power fails after any of them.
//
// The fault model. What a call did is durable or not when the power fails; what is not durable may be there or not,
// whatever became of any other call, earlier or later, because POSIX promises no order:
//   - A call that makes, renames, exchanges or removes entries of directories takes place as a whole or not at all. It
//     is durable once each directory that it changed has been fsynced after it.
//   - What was written to a file is durable once the file was fsynced after it, under whatever name. Until then the
//     bytes of every sector of 512 bytes that were written may be those of before (zeros where the file grew), those
//     that were written, or garbage, and the size is the old or the new one, or in between if nothing later was
//     written. Bytes that were not written keep their values (as SQLite assumes, "powersafe overwrite"). A file whose
//     entry is lost is gone.
//   - An open file is gone with its process: what comes afterwards opens everything anew.
// Not modelled: disks that lie about fsync, sectors that decay later (checksums notice these), permissions and times.
// Calls that fail are the matter of tests/train/file_system_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/io/file_system.h"
#include "tests/train/faulty_file_system.h"

namespace maki::tests {

/// Files with their bytes, and directories, whose paths end with a slash and which have no bytes, by path.
using Tree = std::map<std::string, std::shared_ptr<const std::string>>;
/// The part of a tree that is at a path, relative to it: a file has the name "" there, a directory "/".
Tree subtree(const Tree& tree, const std::string& path);
bool same(const Tree& one, const Tree& other);

/// Files and directories by number; 0 is the root.
struct DiskFile {
  bool is_directory = false;
  std::map<std::string, int> entries = {};  ///< of a directory
  std::shared_ptr<const std::string> bytes = std::make_shared<const std::string>();
};
using Disk = std::vector<DiskFile>;
Tree tree_of(const Disk& disk);

/// An entry of a directory, and the file that it names then; -1: none.
struct Binding {
  int directory;
  std::string name;
  int file;
};

struct DiskCall {
  enum class Kind : std::uint8_t { bind, write, sync, acknowledge };
  Kind kind;
  std::string words;  ///< the call as one reads it; names that are drawn at random are numbered
  int file = -1;      ///< that was written or synced
  std::uint64_t offset = 0;
  std::string bytes = {};
  std::vector<Binding> bindings = {};
  enum class Change : std::uint8_t { made, moved, removed } change = Change::made;  ///< of entries
};

/// Makes every call in the real file system, but does not wait for the disk, and records those below `root`.
class RecordedDisk final : public FileSystem {
 public:
  /// What is below `root` now is durable.
  explicit RecordedDisk(std::string root);

  /// Whatever was done before must survive what happens from here on: the caller reports it as done. Making another
  /// file acknowledges as well.
  void acknowledge();
  /// The process dies when it has made this many calls that are recorded: the next one throws Crash, and none has an
  /// effect from then on, until another process begins.
  void die_after(std::size_t calls) { dies_after_ = calls; }
  void begin_process() { dead_ = false, dies_after_ = SIZE_MAX; }
  const std::vector<DiskCall>& calls() const { return calls_; }
  const Disk& before() const { return before_; }  ///< as it was before the first call
  const Disk& now() const { return now_; }

  int open(const std::string& path, int flags, mode_t mode) override;
  ssize_t write(int descriptor, const void* bytes, std::size_t size) override;
  ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset) override;
  int fsync(int descriptor) override;
  int close(int descriptor) override;
  int rename(const std::string& from, const std::string& to) override;
  int rename_to_new(const std::string& from, const std::string& to) override;
  int exchange(const std::string& one, const std::string& other) override;
  int unlink(const std::string& path) override;
  int mkdir(const std::string& path, mode_t mode) override;
  int rmdir(const std::string& path) override;

 private:
  struct Place {
    int directory = -1;  // -1: not below the root
    std::string name = {};
    int file = -1;
    std::string words = {};
  };
  bool is_dead(bool may_throw);
  Place find(const std::string& path);
  std::string numbered(const std::string& part);
  void record(DiskCall call);
  int bind(int status, DiskCall::Change change, const std::string& words, const std::vector<Binding>& bindings);
  int moved(int status, const std::string& from, const std::string& to);
  void written(int descriptor, const void* bytes, ssize_t size, off_t offset);

  std::string root_;
  Disk before_, now_;
  std::vector<DiskCall> calls_;
  std::size_t dies_after_ = SIZE_MAX;
  bool dead_ = false;
  std::map<int, int> open_;  // the files of descriptors
  std::map<std::string, std::string> numbered_;
};

/// Does what a call does to a disk.
void carry_out(const DiskCall& call, Disk& disk);

/// Every disk that a power failure may leave behind.
class PowerFailures {
 public:
  /// `calls` may differ from those that were recorded: a test leaves one out, or exchanges two.
  PowerFailures(Disk before, std::vector<DiskCall> calls);

  /// The number of different combinations of what became of the calls that are not durable after the first `calls`,
  /// where a file of which not everything is durable counts five: lost, written, zeros, torn, garbage.
  std::uint64_t combinations(std::size_t calls);
  /// Whether something of that depends on a seed: what torn sectors and garbage are.
  bool is_drawn(std::size_t calls);
  /// What is left in one of these cases.
  Tree after(std::size_t calls, std::uint64_t combination, std::uint64_t seed);
  std::size_t size() const { return calls_.size(); }

 private:
  void advance(std::size_t calls);

  std::vector<DiskCall> calls_;
  std::vector<std::size_t> durable_from_;  // the number of calls after which a call is durable
  Disk before_;
  // Those after the calls that were asked for last.
  std::size_t at_ = SIZE_MAX;
  Disk durable_;  // without what is in `later_`
  // The calls that bind, from the first on that is not durable: a durable one after it may bind the same name.
  std::vector<std::size_t> later_;
  std::size_t pending_ = 0;                           // those in `later_` that are not durable
  std::map<int, std::vector<std::size_t>> unsynced_;  // calls that write, by file
};

}  // namespace maki::tests
