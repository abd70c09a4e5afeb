#include "train/run/new_run.h"

#include <algorithm>
#include <filesystem>

#include "data/io/error.h"
#include "data/io/file.h"
#include "train/run/config/config.h"

namespace maki {
namespace {

namespace stdfs = std::filesystem;

// The text of a regular file as short as those that a start writes (config.toml, the longest, has a limit); nullopt if
// it is anything else. Empty if it is gone: another start has removed or renamed it.
std::optional<std::string> short_text(FileSystem& fs, const std::string& path) {
  const stdfs::file_type kind = entry_kind(path);
  if (kind == stdfs::file_type::not_found) return "";
  if (kind != stdfs::file_type::regular) return std::nullopt;
  try {
    std::error_code unknown;
    if (const auto size = stdfs::file_size(path, unknown); !unknown && size > kMaxConfigBytes) return std::nullopt;
    return read_file_limited(fs, path, kMaxConfigBytes);
  } catch (const CheckpointError&) {
    if (entry_kind(path) == stdfs::file_type::not_found) return "";
    throw;
  }
}

// Whether an entry of the directory may have been left behind by a start that was killed, or by one in which the power
// failed, after which what was not yet durable may end with zeros; see require_unoccupied().
bool is_left_over(const RunDirectory& run, const std::string& name, std::string_view config_toml) {
  const std::string path = run.path() + "/" + name;
  if (name == "checkpoints") {
    return entry_kind(path) == stdfs::file_type::directory &&
           std::ranges::all_of(file_names(path), is_temporary_checkpoint);
  }
  const bool known = name == ".lock" || name == "metrics.jsonl" || name == "config.toml" || name == "config.toml.tmp";
  std::optional<std::string> text = known ? short_text(run.file_system(), path) : std::nullopt;
  if (!text) return false;
  text->resize(text->find_last_not_of('\0') + 1);
  if (name == ".lock") return text->find_first_not_of("0123456789") == std::string::npos;
  if (name == "metrics.jsonl") return text->empty();
  if (name == "config.toml") return config_toml.empty() || text == config_toml;
  return config_toml.empty() || config_toml.starts_with(*text);
}

}  // namespace

void require_unoccupied(const RunDirectory& run, std::string_view config_toml) {
  run.require_no_run();
  for (const std::string& name : file_names(run.path())) {
    const bool is_config = name == "config.toml";  // which an earlier start with other options may have written
    check<OccupiedOutput>(is_left_over(run, name, config_toml),
                          "{}: contains {}, which {}; choose another `out`, or an empty directory", run.path(), name,
                          is_config ? "has other settings than this run" : "this run did not create");
  }
}

RunClaim::RunClaim(const RunDirectory& run, std::string_view config_toml) : run_(run) {
  require_unoccupied(run_, config_toml);
  try {
    lock();
    require_unoccupied(run_, config_toml);  // again: another process may have used it before this one had the lock
    run_.create(inside_);
    for (const std::string& file : run_.initial_files()) {
      if (!file_exists(file)) files_.push_back(file);
    }
  } catch (...) {
    roll_back();
    throw;
  }
}

void RunClaim::lock() {
  while (!lock_) {
    make_directories(run_.file_system(), run_.path(), outside_);
    try {
      lock_.emplace(run_);
    } catch (const CheckpointError&) {
      if (file_exists(run_.path())) throw;  // else a claim that failed has removed the directory that it had made
    }
  }
}

// The lock file goes last: while it is there, no other claim can succeed, and once it is gone, one may. rmdir() leaves
// a directory that is not empty, such as one with the lock file of another claim.
void RunClaim::roll_back() {
  FileSystem& fs = run_.file_system();
  for (const std::string& file : files_) fs.unlink(file);
  for (auto directory = inside_.rbegin(); directory != inside_.rend(); ++directory) fs.rmdir(*directory);
  if (lock_ && lock_->created()) fs.unlink(RunLock::file(run_));
  for (auto directory = outside_.rbegin(); directory != outside_.rend(); ++directory) fs.rmdir(*directory);
}

}  // namespace maki
