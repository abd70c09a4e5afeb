#include "train/run/new_run.h"

#include <algorithm>
#include <filesystem>

#include "train/config/config.h"
#include "train/config/error.h"

namespace maki {
namespace {

namespace stdfs = std::filesystem;

bool is_kind(const std::string& path, stdfs::file_type kind) {
  std::error_code error;
  return stdfs::symlink_status(path, error).type() == kind;  // a symbolic link was made by the user
}

// Whether a file is as short as those that a start writes: config.toml, the longest, has a limit.
bool is_short_file(const std::string& path) {
  std::error_code error;
  return is_kind(path, stdfs::file_type::regular) && stdfs::file_size(path, error) <= kMaxConfigBytes;
}

// Whether an entry of the directory may have been left behind by a start that was killed; see require_unoccupied().
bool is_left_over(const RunDirectory& run, const std::string& name, std::string_view config_toml) {
  const std::string path = run.path() + "/" + name;
  if (name == "checkpoints") {
    return is_kind(path, stdfs::file_type::directory) &&
           std::ranges::all_of(file_names(path), is_temporary_checkpoint);
  }
  const bool known =
      name == ".lock" || name == "metrics.jsonl" || name == "config.toml" || name == "config.toml.tmp";
  if (!known || !is_short_file(path)) return false;
  const std::string text = read_file_limited(run.file_system(), path, kMaxConfigBytes);
  if (name == ".lock") return text.find_first_not_of("0123456789") == std::string::npos;
  if (name == "metrics.jsonl") return text.empty();
  if (name == "config.toml") return config_toml.empty() || text == config_toml;
  return config_toml.empty() || config_toml.starts_with(text);
}

}  // namespace

void require_unoccupied(const RunDirectory& run, std::string_view config_toml) {
  run.require_no_run();
  for (const std::string& name : file_names(run.path())) {
    check(is_left_over(run, name, config_toml),
          "{}: contains {}, which this run did not create; choose another --out, or an empty directory", run.path(),
          name);
  }
}

RunClaim::RunClaim(const RunDirectory& run, std::string_view config_toml) : run_(run) {
  require_unoccupied(run_, config_toml);
  try {
    run_.create(directories_);
    lock_.emplace(run_);
    if (lock_->created()) files_.push_back(RunLock::file(run_));
    require_unoccupied(run_, config_toml);  // again: another process may have claimed it before this one had the lock
    for (const std::string& file : run_.initial_files()) {
      if (!file_exists(file)) files_.push_back(file);
    }
  } catch (...) {
    roll_back();
    throw;
  }
}

void RunClaim::roll_back() {
  FileSystem& fs = run_.file_system();
  for (const std::string& file : files_) fs.unlink(file);
  // From the innermost; rmdir() leaves a directory that is not empty.
  for (auto directory = directories_.rbegin(); directory != directories_.rend(); ++directory) fs.rmdir(*directory);
}

}  // namespace maki
