#include "train/run/run_directory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>
#include <unistd.h>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/shell_quote.h"
#include "data/text/directory.h"
#include "train/run/config/config.h"
#include "train/run/container.h"

namespace maki {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kCheckpointPrefix = "step-", kCheckpointSuffix = ".maki";

std::string file_name(std::int64_t step) { return fmt::format("step-{:08}.maki", step); }

std::optional<std::int64_t> step_of(const std::string_view whole) {
  std::string_view name = whole;
  if (!name.starts_with(kCheckpointPrefix) || !name.ends_with(kCheckpointSuffix)) return std::nullopt;
  name.remove_prefix(kCheckpointPrefix.size());
  name.remove_suffix(kCheckpointSuffix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  if (file_name(step) != whole) return std::nullopt;
  return step;
}

}  // namespace

bool is_temporary_checkpoint(std::string_view name) {
  if (!name.ends_with(".tmp")) return false;
  name.remove_suffix(4);
  return name == "last" || name == "best" || step_of(name);
}

std::string RunDirectory::checkpoint_file(std::int64_t step) const {
  return checkpoints_directory() + "/" + file_name(step);
}

void RunDirectory::apply_config(Config& config) const {
  const std::string file = config_file();
  apply_toml(config, read_file_limited(fs_, file, kMaxConfigBytes), file);
}

bool RunDirectory::exists() const { return !checkpoints().empty(); }

void RunDirectory::require_place() const {
  check(path_ != "-", "-: is no name of a run directory; choose another `out`, or ./- for a directory of this name");
  for (stdfs::path at = path_; at.has_relative_path(); at = at.parent_path()) {
    const stdfs::file_type kind = entry_kind(at.string());
    if (kind == stdfs::file_type::not_found) continue;
    std::error_code unknown;
    // Another start may remove a directory that it has made, but nothing else.
    check(kind == stdfs::file_type::directory || (file_exists(at.string()) && stdfs::is_directory(at, unknown)),
          "{}: cannot be a run directory, because {} is not a directory; choose another `out`", path_, at.string());
    return require_writable(at.string());
  }
  require_writable(path_.starts_with('/') ? "/" : ".");
}

void RunDirectory::require_writable(const std::string& directory) const {
  if (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  fail<CheckpointError>("{}: cannot be written: {} for {}; choose another `out`", path_, std::strerror(errno),
                        directory);
}

void RunDirectory::require_no_run() const {
  require_place();
  check<OccupiedOutput>(!exists(), "{}: already contains a run; continue it with `resume` {}, or choose another `out`",
                        path_, shell_quote(path_));
}

void RunDirectory::create(std::vector<std::string>& made) const {
  require_no_run();
  make_directories(fs_, checkpoints_directory(), made);
}

std::vector<std::string> RunDirectory::initial_files() const {
  return {config_file(), metrics_file(), checkpoint_file(0), pointer_file("last"), pointer_file("best")};
}

std::vector<std::int64_t> RunDirectory::checkpoints() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : file_names(checkpoints_directory())) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::optional<std::string> RunDirectory::read_pointer(const char* name) const {
  if (!file_exists(pointer_file(name))) return std::nullopt;
  constexpr std::size_t kMaxPointerBytes = 4096;  // far more than the line of a pointer has
  return read_file_limited(fs_, pointer_file(name), kMaxPointerBytes);
}

std::optional<std::int64_t> RunDirectory::last() const {
  const auto text = read_pointer("last");
  if (!text) return std::nullopt;
  return step_of(text->substr(0, text->find('\n')));
}

std::optional<BestPointer> RunDirectory::best() const {
  const auto text = read_pointer("best");
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  words.imbue(std::locale::classic());
  std::string name;
  BestPointer best{};
  words >> name >> best.step >> best.loss;
  if (!words || step_of(name) != best.step || !std::isfinite(best.loss)) return std::nullopt;
  return best;
}

void RunDirectory::set_last(std::int64_t step) const {
  const std::string text = file_name(step) + "\n";
  replace_file_atomically(fs_, pointer_file("last"), {text_bytes(text)});
}

void RunDirectory::set_best(const BestPointer& best) const {
  const std::string text = fmt::format("{} {} {}\n", file_name(best.step), best.step, best.loss);
  replace_file_atomically(fs_, pointer_file("best"), {text_bytes(text)});
}

void RunDirectory::clear_best() const {
  std::vector<std::string> notes;
  remove(pointer_file("best"), notes);
  check<CheckpointError>(notes.empty(), "{}", fmt::join(notes, ""));
}

void RunDirectory::remove(const std::string& file, std::vector<std::string>& notes) const {
  if (fs_.unlink(file) == 0 || errno == ENOENT) return;
  notes.push_back(fmt::format("{}: cannot be deleted: {}", file, std::strerror(errno)));
}

std::vector<std::string> RunDirectory::prune(std::int64_t keep) const {
  std::vector<std::string> notes;
  const auto newest = last();
  const auto chosen = best();
  std::vector<std::int64_t> steps = checkpoints();
  const auto surplus = static_cast<std::int64_t>(steps.size()) - keep;
  for (std::int64_t i = 0; i < surplus; ++i) {
    const std::int64_t step = steps[static_cast<std::size_t>(i)];
    if (step == newest || (chosen && step == chosen->step)) continue;
    remove(checkpoint_file(step), notes);
  }
  return notes;
}

std::vector<std::string> RunDirectory::remove_temporary_files() const {
  std::vector<std::string> notes;
  for (const std::string& file : {config_file(), metrics_file()}) remove(file + ".tmp", notes);
  for (const std::string& name : file_names(checkpoints_directory())) {
    if (is_temporary_checkpoint(name)) remove(checkpoints_directory() + "/" + name, notes);
  }
  return notes;
}

std::string default_run_path(const std::string& first_corpus) {
  std::string stem = stdfs::path(first_corpus).lexically_normal().stem().string();
  if (first_corpus.ends_with("/")) stem = stdfs::path(first_corpus).parent_path().filename().string();
  if (first_corpus == "-") stem = "stdin";
  if (stem.starts_with("@")) stem = stem.substr(1, stem.find(':') - 1);
  if (stem.empty() || stem == "." || stem == "..") stem = "run";
  for (int n = 1;; ++n) {
    const std::string path = fmt::format("runs/{}-{}", stem, n);
    std::error_code error;
    const bool taken = stdfs::exists(path, error);
    check(!error, "{}: cannot be used as the run directory: {}; choose one with `out`", path, error.message());
    if (!taken) return path;
  }
}

std::vector<std::string> runs_in(const std::string& directory) {
  std::vector<std::string> names = file_names(directory);
  std::erase_if(names, [&](const std::string& name) {
    try {
      return !RunDirectory(directory + "/" + name).exists();
    } catch (const Error&) {
      return true;  // a directory that this user may not read
    }
  });
  return names;
}

std::string advise_run(const std::string& path) {
  const RunDirectory above((stdfs::path(path) / "..").string());
  std::error_code unknown;
  if (stdfs::equivalent(above.checkpoints_directory(), path, unknown))
    return "name the run to which it belongs, the directory above it";
  const std::vector<std::string> runs = runs_in(path);
  if (runs.empty()) return "name a run, as maki train makes one";
  return fmt::format("name a run that is in it, such as {}", shell_quote((stdfs::path(path) / runs.front()).string()));
}

// Without a choice: best, else last, else the newest, for when the files of some are missing or damaged. No step twice.
// A run that was ended between its first checkpoint and the pointer has no `last`.
std::vector<std::int64_t> ChosenCheckpoint::candidates() const {
  const bool best_first = choice_ == "best" || (choice_.empty() && preferred_ == Preferred::best);
  std::vector<std::int64_t> candidates;
  const auto add = [&](std::int64_t step) {
    if (std::ranges::find(candidates, step) == candidates.end()) candidates.push_back(step);
  };
  if (const auto best = run_.best(); best && best_first) add(best->step);
  if (const auto last = run_.last(); last && choice_ != "best") add(*last);
  if (choice_ == "best" || (choice_ == "last" && !candidates.empty())) return candidates;
  std::vector<std::int64_t> steps = run_.checkpoints();
  std::ranges::reverse(steps);
  std::ranges::for_each(steps, add);
  return candidates;
}

ChosenCheckpoint::ChosenCheckpoint(const std::string& run_or_file, std::string choice, std::vector<std::string>& notes,
                                   Preferred preferred)
    : run_(run_or_file),
      choice_(std::move(choice)),
      preferred_(preferred),
      notes_(notes),
      notes_before_(notes.size()),
      path_(run_or_file) {
  std::error_code error_code;
  const auto status = stdfs::status(run_or_file, error_code);
  check<CheckpointError>(!error_code || status.type() == stdfs::file_type::not_found, "{}: cannot be accessed: {}",
                         run_or_file, error_code.message());
  check(stdfs::exists(status), "{}: there is no such run directory or checkpoint", run_or_file);
  if (!stdfs::is_directory(status)) {
    check(choice_.empty(), "{}: is a file, but `checkpoint` selects a checkpoint of a run directory; omit `checkpoint`",
          run_or_file);
    return;
  }
  if (choice_.empty() || choice_ == "best" || choice_ == "last") {
    list();
    return;
  }
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(choice_.data(), choice_.data() + choice_.size(), step);
  check(error == std::errc() && end == choice_.data() + choice_.size(),
        "checkpoint: must be last, best or a step; got {}", choice_);
  path_ = run_.checkpoint_file(step);
  if (!file_exists(path_)) refuse(fmt::format("of step {}", step));
}

void ChosenCheckpoint::refuse(const std::string& what) const {
  refuse_hugging_face(run_.path());
  const std::vector<std::int64_t> steps = run_.checkpoints();
  if (steps.empty()) fail("{}: is no run with a checkpoint; {}", run_.path(), advise_run(run_.path()));
  constexpr std::ptrdiff_t kMaxSteps = 8;  // enough for a message
  const bool all = std::ssize(steps) <= kMaxSteps;
  fail("{}: contains no checkpoint {}; choose another one: it has those of steps {}{}", run_.path(), what,
       all ? "" : "…, ", fmt::join(all ? steps.begin() : steps.end() - kMaxSteps, steps.end(), ", "));
}

void ChosenCheckpoint::list() {
  steps_ = candidates();
  at_ = 0;
  if (steps_.empty()) refuse("named " + choice_);
  path_ = run_.checkpoint_file(steps_.front());
}

bool ChosenCheckpoint::use_another(const CorruptFile& error) {
  if (is_only_one()) return false;
  if (at_ + 1 < steps_.size()) {
    const std::int64_t step = steps_[++at_];
    notes_.push_back(fmt::format("{}; using another checkpoint, that of step {}", error.what(), step));
    path_ = run_.checkpoint_file(step);
    return true;
  }
  if (candidates() == steps_) return false;
  notes_.resize(notes_before_);  // the run goes on, and has deleted what the pointers named a moment ago
  list();
  return true;
}

std::string find_checkpoint(const std::string& run_or_file, const std::string& choice,
                            std::vector<std::string>& notes) {
  ChosenCheckpoint chosen(run_or_file, choice, notes);
  if (chosen.is_only_one()) return chosen.path();
  return chosen.read([](const std::string& path) { return ContainerReader(path).path(); });
}

}  // namespace maki
