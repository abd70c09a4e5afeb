#include "train/app/serve/served_runs.h"

#include <algorithm>
#include <filesystem>

#include "data/io/error.h"
#include "data/io/file.h"
#include "train/app/report.h"
#include "train/app/serve/http.h"
#include "train/loop/look_inside.h"
#include "train/run/config/config.h"
#include "train/run/config/tasks.h"
#include "train/run/run_lock.h"

namespace maki {
namespace {

std::string name_of(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::canonical(path);
  return whole.has_filename() ? whole.filename().string() : "run";
}

Json describe(const std::string& name, const RunDirectory& run) {
  Config config;
  run.apply_config(config);
  const TaskRule& rule = task_rule(config);
  const auto last = run.last();
  const auto best = run.best();
  return {{"name", name},
          {"step", last ? Json(*last) : Json()},
          {"max_steps", config.max_steps},
          {"running", RunLock::is_held(run)},
          {"kind", config.model},
          {"task", rule.name},
          {"loss_per_text", rule.labels},
          {"can_generate", rule.writes() && !rule.reads_source()},
          {"can_look_inside", can_look_inside(config)},
          {"checkpoints", run.checkpoints()},
          {"best", best ? Json(best->step) : Json()},
          {"n_layer", config.n_layer},
          {"n_head", config.n_head},
          {"width", config.n_embd},
          {"block_size", config.block_size}};
}

}  // namespace

ServedRuns::ServedRuns(const std::string& path) : path_(path) {
  check(is_directory(path, throw_as<CheckpointError>),
        "{}: there is no such directory; give a run, or a directory that contains runs", path);
  if (RunDirectory(path).exists()) single_ = name_of(path);
  if (paths().empty()) fail("{}: contains no run; {}", path, advise_run(path));
}

ServedRuns::Paths ServedRuns::paths() const {
  Paths runs;
  if (single_) {
    if (RunDirectory(path_).exists()) runs.emplace(*single_, path_);
    return runs;
  }
  for (const std::string& name : runs_in(path_)) runs.emplace(name, path_ + "/" + name);
  return runs;
}

RunDirectory ServedRuns::run(std::string_view name, const char* field) const {
  const auto runs = paths();
  if (const auto found = runs.find(name); found != runs.end()) return RunDirectory(found->second);
  const std::string what =
      name.empty() ? "must name a run" : fmt::format("there is no run {} here", truncate_for_message(name));
  throw HttpError(MHD_HTTP_NOT_FOUND, fmt::format("{}: {}; GET /v1/models lists those that there are", field, what));
}

ChosenCheckpoint ServedRuns::checkpoint(std::string_view model, std::vector<std::string>& notes) const {
  const std::size_t at = paths().contains(model) ? model.size() : std::min(model.rfind('@'), model.size());
  const std::string choice(at < model.size() ? model.substr(at + 1) : "");
  const std::string_view name = model.substr(0, at);
  const std::string path = run(name, "model").path();
  try {
    return {path, choice, notes};
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error&) {
    throw HttpError(MHD_HTTP_NOT_FOUND,
                    fmt::format("model: the run {} has no checkpoint{}{}; GET /api/runs lists those of each run", name,
                                choice.empty() ? "" : " ", truncate_for_message(choice)));
  }
}

std::string ServedRuns::runs_json() const {
  Json runs = Json::array();
  for (const auto& [name, path] : paths()) {
    try {
      runs.push_back(describe(name, RunDirectory(path)));
    } catch (const Error&) {
      // A run that has just been deleted, or whose configuration cannot be read.
    }
  }
  return json_text(runs);
}

std::string ServedRuns::models_json() const {
  Json models = Json::array();
  for (const auto& [name, path] : paths())
    models.push_back({{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "maki"}});
  return json_text(Json{{"object", "list"}, {"data", models}});
}

}  // namespace maki
