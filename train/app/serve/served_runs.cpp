#include "train/app/serve/served_runs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

#include "data/io/error.h"
#include "data/io/file.h"
#include "train/app/serve/http.h"
#include "train/run/checkpoint.h"
#include "train/run/config/config.h"
#include "train/run/config/tasks.h"
#include "train/run/metrics_line.h"
#include "train/run/run_lock.h"

namespace maki {
namespace {

std::string name_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
  const std::string name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  return name.empty() ? "run" : name;
}

std::string not_found(std::string_view name) {
  return fmt::format("model: there is no run named {} here; GET /v1/models lists those that there are",
                     truncate_for_message(name));
}

}  // namespace

ServedRuns::ServedRuns(const std::string& path) : path_(path), single_(RunDirectory(path).exists()) {
  check(is_directory(path), "{}: there is no such directory; give a run, or a directory that contains runs", path);
  check(!list().empty(), "{}: contains no run; train one first, with maki train", path);
}

std::vector<ServedRuns::Named> ServedRuns::list() const {
  if (single_) return {{name_of(path_), path_}};
  std::vector<Named> runs;
  for (const std::string& name : file_names(path_)) {
    std::string path = path_ + "/" + name;
    if (RunDirectory(path).exists()) runs.push_back({name, std::move(path)});
  }
  return runs;
}

RunDirectory ServedRuns::run(std::string_view name) const {
  const std::vector<Named> runs = list();
  const auto found = std::ranges::find(runs, name, &Named::name);
  if (found == runs.end()) throw HttpError(404, not_found(name));
  return RunDirectory(found->path);
}

std::string ServedRuns::checkpoint(std::string_view model) const {
  const std::vector<Named> runs = list();
  const auto path_of = [&](std::string_view name) -> const Named* {
    const auto found = std::ranges::find(runs, name, &Named::name);
    return found == runs.end() ? nullptr : &*found;
  };
  const Named* named = path_of(model);
  std::vector<std::string> notes;
  if (named != nullptr) return find_checkpoint(named->path, "", notes);
  const std::size_t at = model.rfind('@');
  named = at == std::string_view::npos ? nullptr : path_of(model.substr(0, at));
  if (named == nullptr) throw HttpError(404, not_found(model));
  std::int64_t step = -1;
  const std::string_view digits = model.substr(at + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const RunDirectory run(named->path);
  const std::vector<std::int64_t> steps = run.checkpoints();
  if (error != std::errc() || end != digits.data() + digits.size() || std::ranges::find(steps, step) == steps.end())
    throw HttpError(404,
                    fmt::format("model: {} has no checkpoint of step {}", named->name, truncate_for_message(digits)));
  return run.checkpoint_file(step);
}

std::string ServedRuns::only_name() const {
  const std::vector<Named> runs = list();
  if (runs.size() != 1) throw HttpError(400, "model: must be given, because there are several runs");
  return runs.front().name;
}

Json ServedRuns::describe(const Named& named) {
  const RunDirectory run(named.path);
  Json facts{{"name", named.name}, {"running", is_running(run)}, {"checkpoints", run.checkpoints()}};
  const std::optional<std::int64_t> last = run.last();
  const std::optional<BestPointer> best = run.best();
  facts["step"] = last ? Json(*last) : Json();
  facts["best"] = best ? Json(best->step) : Json();
  Config config;
  run.apply_config(config);
  const TaskRule& rule = task_rule(config);
  facts["max_steps"] = config.max_steps;
  facts["kind"] = config.model;
  facts["task"] = rule.name;
  facts["can_generate"] = rule.writes() && !rule.reads_source();
  facts["can_look_inside"] = false;
  facts["n_layer"] = config.n_layer;
  facts["n_head"] = config.n_head;
  facts["width"] = config.n_embd;
  return facts;
}

std::string ServedRuns::runs_json() const {
  Json runs = Json::array();
  for (const Named& named : list()) {
    try {
      runs.push_back(describe(named));
    } catch (const Error&) {
      // A run that has just been deleted, or whose configuration cannot be read.
    }
  }
  return json_text(runs);
}

std::string ServedRuns::models_json() const {
  Json models = Json::array();
  for (const Named& named : list()) {
    struct stat status = {};
    const bool known = stat(named.path.c_str(), &status) == 0;
    models.push_back({{"id", named.name},
                      {"object", "model"},
                      {"created", known ? static_cast<std::int64_t>(status.st_mtime) : 0},
                      {"owned_by", "maki"}});
  }
  return json_text(Json{{"object", "list"}, {"data", models}});
}

// Lines of /proc/locks: "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF". The device is not compared, because some
// file systems show another one here; the process is, with that which the lock file names.
bool is_running(const RunDirectory& run) {
  struct stat status = {};
  std::int64_t holder = 0;
  if (stat(RunLock::file(run).c_str(), &status) != 0 || !(std::ifstream(RunLock::file(run)) >> holder)) return false;
  const std::string inode = fmt::format(":{}", status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, place;
    std::int64_t process = 0;
    words >> number >> kind >> mode >> access >> process >> place;
    if (words && kind == "FLOCK" && access == "WRITE" && process == holder && place.ends_with(inode)) return true;
  }
  return false;
}

Json start_json(const RunDirectory& run) {
  Json facts{{"max_steps", nullptr}, {"best_possible_loss", nullptr}, {"nats_per_character_factor", nullptr}};
  try {
    Config config;
    run.apply_config(config);
    facts["max_steps"] = config.max_steps;
    const double best = read_state(ContainerReader(run.checkpoint_file(run.checkpoints().at(0)))).best_possible_loss;
    if (best > 0) facts["best_possible_loss"] = best;
  } catch (const std::exception&) {
    // What cannot be read stays unknown.
  }
  // Counting is measured before the first step, so that its line is one of the first.
  constexpr std::size_t kBeginning = 64 << 10;
  std::istringstream lines(read_beginning(run.metrics_file(), kBeginning));
  for (std::string line; std::getline(lines, line);) {
    const std::optional<MetricsLine> metrics = read_metrics_line(line);
    if (!metrics || metrics->kind != "counting") continue;
    const auto loss = metrics->number("val_loss"), per_character = metrics->number("nats_per_character");
    if (loss && per_character && *loss > 0) facts["nats_per_character_factor"] = *per_character / *loss;
  }
  return facts;
}

}  // namespace maki
