#include "train/run/set_aside.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

#include "train/config/error.h"

namespace maki {
namespace {

std::string new_folder(const std::string& run) {
  for (int n = 1;; ++n) {
    const std::string path = fmt::format("{}/abandoned-{}", run, n);
    std::error_code error;
    if (std::filesystem::create_directory(path, error)) return path;
    check<CheckpointError>(!error, "{}: cannot be created: {}", path, error.message());
  }
}

}  // namespace

std::string move_later_checkpoints(const RunDirectory& run, std::int64_t step, FileSystem& fs) {
  std::vector<std::int64_t> later = run.checkpoints();
  std::erase_if(later, [step](std::int64_t other) { return other <= step; });
  if (later.empty()) return "";
  const std::string folder = new_folder(run.path());
  sync_directory(fs, run.path());
  if (file_exists(run.metrics_file())) {
    const std::string metrics = read_file_limited(fs, run.metrics_file());
    replace_file_atomically(fs, folder + "/metrics.jsonl", {text_bytes(metrics)});
  }
  // Before anything is moved, so that `last` never points to a checkpoint that is gone. The latest checkpoint is moved
  // first: wherever this is interrupted, those that remain have no gap.
  run.set_last(step);
  for (auto other = later.rbegin(); other != later.rend(); ++other) {
    const std::string from = run.checkpoint_file(*other);
    const std::string to = folder + "/" + std::filesystem::path(from).filename().string();
    const bool moved = fs.rename(from, to) == 0;  // before the arguments below are evaluated, which read errno
    check<CheckpointError>(moved, "{}: cannot be moved to {}: {}", from, to, std::strerror(errno));
  }
  sync_directory(fs, folder);
  return folder;
}

}  // namespace maki
