// A run directory: config.toml, metrics.jsonl, checkpoints/step-00000250.maki, and the pointers last and best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/file_system.h"

namespace maki {

struct Config;

/// Whether a file of this name in the directory of checkpoints is a temporary file of replace_file_atomically().
bool is_temporary_checkpoint(std::string_view name);

/// What the pointer `best` contains: the step of the best checkpoint and its validation loss.
struct BestPointer {
  std::int64_t step;
  double loss;
};

class RunDirectory {
 public:
  /// Without slashes at the end of the path, which messages would double.
  explicit RunDirectory(std::string path, FileSystem& fs = posix_file_system()) : path_(std::move(path)), fs_(fs) {
    while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  }

  const std::string& path() const { return path_; }
  FileSystem& file_system() const { return fs_; }
  std::string config_file() const { return path_ + "/config.toml"; }
  std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  std::string checkpoints_directory() const { return path_ + "/checkpoints"; }
  std::string checkpoint_file(std::int64_t step) const;
  /// Overwrites the fields that config.toml sets. Throws Error for what apply_toml() rejects, and CheckpointError if
  /// the file cannot be read or is too large (that of an earlier version may list too many files of the corpus).
  void apply_config(Config& config) const;
  /// The files that a run writes before its first step.
  std::vector<std::string> initial_files() const;

  /// Whether the directory contains a run, that is, at least one checkpoint.
  bool exists() const;
  /// Throws Error unless the path is a directory or can become one: the nearest of its parents at which there is
  /// something must be a directory. CheckpointError if that cannot be written to, or if the system cannot tell.
  void require_place() const;
  /// Throws what require_place() throws, and OccupiedOutput, naming --resume, if it contains a run.
  void require_no_run() const;
  /// Creates the directories, and appends those that did not exist to `made`. Throws what require_no_run() throws, and
  /// CheckpointError if a directory cannot be created.
  void create(std::vector<std::string>& made) const;
  void create() const {
    std::vector<std::string> made;
    create(made);
  }

  /// The steps of the existing checkpoints, ascending. The files are not verified.
  std::vector<std::int64_t> checkpoints() const;
  /// What the pointers contain; nullopt if they are missing or damaged. The checkpoint may not exist. These and the
  /// functions that change them throw CheckpointError if the file cannot be read, written or deleted.
  std::optional<std::int64_t> last() const;
  std::optional<BestPointer> best() const;
  void set_last(std::int64_t step) const;
  void set_best(const BestPointer& best) const;
  void clear_best() const;
  /// Deletes all but the newest `keep` checkpoints, but never those that last and best point to; set these first.
  /// Returns a message for each file that cannot be deleted.
  [[nodiscard]] std::vector<std::string> prune(std::int64_t keep) const;
  /// Removes the temporary files of interrupted writes. Returns a message for each that cannot be removed.
  [[nodiscard]] std::vector<std::string> remove_temporary_files() const;

 private:
  void require_writable(const std::string& directory) const;
  std::string pointer_file(const char* name) const { return checkpoints_directory() + "/" + name; }
  void remove(const std::string& file, std::vector<std::string>& notes) const;
  std::optional<std::string> read_pointer(const char* name) const;

  std::string path_;
  FileSystem& fs_;
};

/// The path of a run whose user names none: `runs/STEM-N`, where STEM is the stem of the first corpus ("stdin" for "-",
/// "stories" for "@stories:100") and N the lowest number from 1 for which there is no such path. Throws Error if a path
/// cannot be looked up.
std::string default_run_path(const std::string& first_corpus);

/// The names of the runs that a directory contains, ascending. Throws CheckpointError if it cannot be listed.
std::vector<std::string> runs_in(const std::string& directory);
/// What to do about a path without checkpoints that was given as a run: the end of a sentence. Throws as runs_in()
/// does.
std::string advise_run(const std::string& path);

/// Which checkpoint is tried first where no choice is made.
enum class Preferred : std::uint8_t { best, last };

/// The checkpoint that a verb reads. A .maki file is used as it is. For a run directory it is `choice` ("best", "last"
/// or a step) or, if that is empty, the best unless the last is preferred, else the last, else the newest checkpoint;
/// of a run without the pointer `last`, "last" is the newest.
class ChosenCheckpoint {
 public:
  /// Messages about checkpoints that are missing or damaged are appended to `notes`. Throws Error if there is no such
  /// checkpoint or a choice is given with a file, CheckpointError if it cannot be looked up. Requires: `notes` outlives
  /// this object.
  ChosenCheckpoint(const std::string& run_or_file, std::string choice, std::vector<std::string>& notes,
                   Preferred preferred = Preferred::best);

  const std::string& path() const { return path_; }
  /// Whether no other checkpoint may take its place: it is a .maki file or that of a chosen step.
  bool is_only_one() const { return steps_.empty(); }

  /// Returns read(path()), where another checkpoint takes the place of one for which that throws CorruptFile. One that
  /// is deleted while the run goes on is no error: the pointers are read again. Throws the last CorruptFile if there is
  /// no other checkpoint, and what else read() and the constructor throw.
  template <class Read>
  auto read(const Read& read) {
    for (;;) {
      try {
        return read(path_);
      } catch (const CorruptFile& error) {
        if (!use_another(error)) throw;
      }
    }
  }

 private:
  std::vector<std::int64_t> candidates() const;
  void list();
  [[noreturn]] void refuse(const std::string& what) const;
  bool use_another(const CorruptFile& error);

  RunDirectory run_;
  std::string choice_;
  Preferred preferred_;
  std::vector<std::string>& notes_;
  std::size_t notes_before_;
  std::vector<std::int64_t> steps_;  ///< the candidates, the first to be tried first
  std::size_t at_ = 0;               ///< of path_ in steps_
  std::string path_;
};

/// The path of a ChosenCheckpoint. Of the candidates only what the constructor of ContainerReader verifies is looked
/// at, and nothing of a chosen step or a .maki file. Throws as ChosenCheckpoint does.
std::string find_checkpoint(const std::string& run_or_file, const std::string& choice, std::vector<std::string>& notes);

}  // namespace maki
