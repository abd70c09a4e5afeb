// A run directory: config.toml, metrics.jsonl, checkpoints/step-00000250.maki, and the pointers last and best.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/file_system.h"

namespace maki {

/// Is this, in the directory of checkpoints, a temporary file of commit_file()?
bool is_temporary_checkpoint(std::string_view name);

/// What `best` points to.
struct Best {
  std::int64_t step;
  double loss;
};

class RunDirectory {
 public:
  explicit RunDirectory(std::string path, FileSystem& fs = posix()) : path_(std::move(path)), fs_(fs) {}

  const std::string& path() const { return path_; }
  FileSystem& file_system() const { return fs_; }
  std::string config_file() const { return path_ + "/config.toml"; }
  std::string metrics_file() const { return path_ + "/metrics.jsonl"; }
  std::string checkpoints_directory() const { return path_ + "/checkpoints"; }
  std::string checkpoint_file(std::int64_t step) const;
  /// What a run writes before its first step.
  std::vector<std::string> first_files() const;

  /// Does it hold a run: a checkpoint at least?
  bool exists() const;
  /// Throws Error, naming --resume, when it holds one.
  void require_no_run() const;
  /// Makes the directories; those that were not there are appended to `made`. Throws Error when it holds a run already,
  /// naming --resume; CheckpointError when it cannot be made.
  void create(std::vector<std::string>& made) const;
  void create() const {
    std::vector<std::string> made;
    create(made);
  }

  /// Steps of the checkpoints that are there, ascending; not verified.
  std::vector<std::int64_t> checkpoints() const;
  std::optional<std::int64_t> last() const;
  std::optional<Best> best() const;
  void set_last(std::int64_t step) const;
  void set_best(const Best& best) const;
  void clear_best() const;
  /// Deletes all but the newest `keep` checkpoints; never what last and best point to. Only after those were moved.
  /// Returns a sentence about each that cannot be deleted.
  [[nodiscard]] std::vector<std::string> prune(std::int64_t keep) const;
  /// Removes what an interrupted write left. Returns a sentence about each file that cannot be removed.
  [[nodiscard]] std::vector<std::string> remove_temporary_files() const;

  /// The newest checkpoint that `verifies`, which throws LostFile for one that is damaged; sentences about those go to
  /// `notes`. Throws CheckpointError when there is none, and when one cannot be read: it may be intact, and to go on
  /// from an older one would overwrite it.
  std::int64_t newest_verified(const std::function<void(const std::string& file)>& verifies,
                               std::vector<std::string>& notes) const;

 private:
  std::string pointer_file(const char* name) const { return checkpoints_directory() + "/" + name; }
  void remove(const std::string& file, std::vector<std::string>& notes) const;
  std::optional<std::string> read_pointer(const char* name) const;

  std::string path_;
  FileSystem& fs_;
};

/// runs/<stem of the first corpus>-<n>, n the lowest free.
std::string default_run_path(const std::string& first_corpus);

/// The checkpoint that `generate`, `eval` and `inspect` read: a .maki file itself, or of a run directory `choice`
/// ("best", "last", a step) or, when empty, best, else last, else the newest; sentences about those that are
/// missing or damaged go to `notes`. Throws Error where there is nothing of the kind, CheckpointError where it cannot
/// be read.
std::string choose_checkpoint(const std::string& run_or_file, const std::string& choice,
                              std::vector<std::string>& notes);

}  // namespace maki
