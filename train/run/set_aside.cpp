#include "train/run/set_aside.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "data/io/descriptor.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "train/run/metrics.h"

namespace maki {
namespace {

constexpr std::string_view kUnfinished = "returning-to-";

std::string unfinished_folder(const RunDirectory& run, std::int64_t step) {
  return fmt::format("{}/{}{}", run.path(), kUnfinished, step);
}

// The step of an unfinished return whose checkpoint exists.
std::optional<std::int64_t> unfinished_step(const RunDirectory& run) {
  for (const std::string& name : file_names(run.path())) {
    if (!name.starts_with(kUnfinished)) continue;
    std::int64_t step = 0;
    std::from_chars(name.data() + kUnfinished.size(), name.data() + name.size(), step);
    const std::string folder = unfinished_folder(run, step);
    if (folder == run.path() + "/" + name && file_exists(run.checkpoint_file(step))) return step;
  }
  return std::nullopt;
}

// Nothing can be renamed to another file system, and a return that cannot be completed would end every later resume.
void require_one_file_system(const RunDirectory& run, std::int64_t step) {
  const auto device = [&run](const std::string& directory) {
    return Descriptor(run.file_system(), directory, O_RDONLY | O_DIRECTORY).status().st_dev;
  };
  check<CheckpointError>(device(run.checkpoints_directory()) == device(run.path()),
                         "{}: is on another file system than {}, to which no checkpoint can be moved; move those after "
                         "step {} to a folder of your own, and repeat the command",
                         run.checkpoints_directory(), run.path(), step);
}

// Everything but the folder itself. May have been done in part before.
std::string fill_folder(const RunDirectory& run, std::int64_t step) {
  FileSystem& fs = run.file_system();
  const std::string folder = unfinished_folder(run, step), copy = folder + "/metrics.jsonl";
  if (file_exists(run.metrics_file()) && !file_exists(copy)) {
    const std::string metrics = read_metrics_text(fs, run.metrics_file());
    replace_file_atomically(fs, copy, {text_bytes(metrics)});
  }
  // Before anything is moved, so that `last` never points to a checkpoint that is gone.
  run.set_last(step);
  for (const std::int64_t other : run.checkpoints()) {
    if (other <= step) continue;
    const std::string from = run.checkpoint_file(other);
    const std::string to = folder + "/" + std::filesystem::path(from).filename().string();
    const bool moved = fs.rename(from, to) == 0;  // before the arguments below are evaluated, which read errno
    check<CheckpointError>(moved, "{}: cannot be moved to {}: {}", from, to, std::strerror(errno));
  }
  // The old names must be gone for good as well as the new ones be there.
  sync_directory(fs, folder);
  sync_directory(fs, run.checkpoints_directory());
  return set_aside(run, folder);
}

}  // namespace

std::string set_aside(const RunDirectory& run, const std::string& folder) {
  int n = 1;
  while (file_exists(fmt::format("{}/abandoned-{}", run.path(), n))) ++n;
  const std::string numbered = fmt::format("{}/abandoned-{}", run.path(), n);
  const bool renamed = run.file_system().rename(folder, numbered) == 0;
  check<CheckpointError>(renamed, "{}: cannot be renamed to {}: {}", folder, numbered, std::strerror(errno));
  sync_directory(run.file_system(), run.path());
  return numbered;
}

std::string move_later_checkpoints(const RunDirectory& run, std::int64_t step) {
  const std::vector<std::int64_t> steps = run.checkpoints();
  if (std::ranges::none_of(steps, [step](std::int64_t other) { return other > step; })) return "";
  require_one_file_system(run, step);
  std::vector<std::string> made;
  make_directories(run.file_system(), unfinished_folder(run, step), made);
  return fill_folder(run, step);
}

std::string complete_return(const RunDirectory& run) {
  const std::optional<std::int64_t> step = unfinished_step(run);
  return step ? fill_folder(run, *step) : "";
}

}  // namespace maki
