#include "train/app/serve/served_runs.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "data/io/error.h"
#include "data/io/file.h"
#include "train/app/serve/http.h"
#include "train/loop/look_inside.h"
#include "train/run/checkpoint.h"
#include "train/run/config/config.h"
#include "train/run/config/tasks.h"
#include "train/run/metrics_line.h"
#include "train/run/run_lock.h"

namespace maki {
namespace {

std::string name_of(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::canonical(path);
  return whole.has_filename() ? whole.filename().string() : "run";
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json describe(const std::string& name, const RunDirectory& run) {
  Config config;
  run.apply_config(config);
  const TaskRule& rule = task_rule(config);
  const std::optional<BestPointer> best = run.best();
  return {{"name", name},
          {"step", or_null(run.last())},
          {"max_steps", config.max_steps},
          {"running", RunLock::is_held(run)},
          {"kind", config.model},
          {"task", rule.name},
          {"can_generate", rule.writes() && !rule.reads_source()},
          {"can_look_inside", can_look_inside(config)},
          {"checkpoints", run.checkpoints()},
          {"best", best ? Json(best->step) : Json()},
          {"n_layer", config.n_layer},
          {"n_head", config.n_head},
          {"width", config.n_embd}};
}

}  // namespace

ServedRuns::ServedRuns(const std::string& path) : path_(path) {
  check(is_directory(path), "{}: there is no such directory; give a run, or a directory that contains runs", path);
  if (RunDirectory(path).exists()) single_ = name_of(path);
  check(!list().empty(), "{}: contains no run; train one first, with maki train", path);
}

std::vector<ServedRuns::Named> ServedRuns::list() const {
  std::vector<Named> runs;
  if (single_) {
    if (RunDirectory(path_).exists()) runs.push_back({*single_, path_});
    return runs;
  }
  for (const std::string& name : file_names(path_)) {
    try {
      if (RunDirectory(path_ + "/" + name).exists()) runs.push_back({name, path_ + "/" + name});
    } catch (const Error&) {
      // A directory that this user may not read.
    }
  }
  return runs;
}

RunDirectory ServedRuns::run(std::string_view name) const {
  const std::vector<Named> runs = list();
  const auto found = std::ranges::find(runs, name, &Named::name);
  if (found != runs.end()) return RunDirectory(found->path);
  throw HttpError(MHD_HTTP_NOT_FOUND, fmt::format("model: there is no run {} here; GET /v1/models lists those that are",
                                                  truncate_for_message(name)));
}

std::string ServedRuns::checkpoint(std::string_view model) const {
  const std::vector<Named> runs = list();
  const bool whole = std::ranges::find(runs, model, &Named::name) != runs.end();
  const std::size_t at = whole ? model.size() : std::min(model.rfind('@'), model.size());
  const std::string choice(at < model.size() ? model.substr(at + 1) : "");
  std::vector<std::string> notes;
  return find_checkpoint(run(model.substr(0, at)).path(), choice, notes);
}

std::string ServedRuns::runs_json() const {
  Json runs = Json::array();
  for (const auto& [name, path] : list()) {
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
  for (const auto& [name, path] : list())
    models.push_back({{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "maki"}});
  return json_text(Json{{"object", "list"}, {"data", models}});
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
    const std::optional<MetricsLine> counting = read_metrics_line(line);
    if (counting && counting->kind == "counting")
      facts["nats_per_character_factor"] =
          counting->number("nats_per_character").value_or(0) / counting->number("val_loss").value_or(0);
  }
  return facts;
}

}  // namespace maki
