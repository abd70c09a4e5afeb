#include "train/app/report/measured_run.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "data/io/file.h"
#include "data/io/number.h"
#include "data/io/printable.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/run/container.h"
#include "train/run/metrics.h"

namespace maki {
namespace {

template <class Text>
TableRow row_of(const std::vector<MeasuredRun>& runs, const std::string& name, const Text& text) {
  TableRow row = {name};
  for (const MeasuredRun& run : runs) row.push_back(escape_unprintable(text(run)));
  return row;
}

std::vector<std::string> sources_of(const std::string& run) {
  try {
    return stored_config(run).value_or(Config()).corpus;
  } catch (const Error&) {
    return {};
  }
}

MeasuredRun read_measured_run(const std::string& path) {
  CheckpointState state = read_checkpoint(
      path, "", [](const std::string& file) { return read_state(ContainerReader(file)); }, Preferred::last);
  if (!is_directory(path, throw_as<CheckpointError>)) return {path, std::move(state), {}, {}, {}};
  const RunDirectory run(path);
  return {path, std::move(state), read_history(run.metrics_file()), run.best(), sources_of(path)};
}

}  // namespace

std::vector<MeasuredRun> read_measured_runs(const std::vector<std::string>& paths) {
  std::vector<MeasuredRun> runs;
  std::ranges::transform(paths, std::back_inserter(runs), read_measured_run);
  return runs;
}

std::optional<double> share_of_best(const MeasuredRun& run) {
  const std::vector<EvalPoint> points = run.history.validations();
  if (!run.best || points.empty()) return std::nullopt;
  const auto own = std::ranges::find(points, run.best->step, &EvalPoint::step);
  // A best checkpoint that was measured again has the share of the evaluations since then.
  const double share = own != points.end() && own->loss == run.best->loss ? own->share : points.back().share;
  return share > 0 ? std::optional(share) : std::nullopt;
}

std::string best_of(const MeasuredRun& run, const PageLanguage& say) {
  if (run.best) {
    const double share = share_of_best(run).value_or(1);
    const std::string part = share == 1 ? "" : say(" on {:.3g}% of the text", "、テキストの {:.3g}%", 100 * share);
    return say("{0:.4f}{2} at step {1}", "{0:.4f}（ステップ {1}{2}）", run.best->loss, with_separators(run.best->step),
               part);
  }
  if (run.history.steps().empty()) return "";
  return run.state.val_tokens == 0 ? say("none, because there is no validation text", "なし（検証テキストがない）")
                                   : say("none yet", "まだない");
}

std::string time_of(const MeasuredRun& run) {
  return run.history.steps().empty() ? "" : format_duration(run.history.elapsed_seconds());
}

Comparison compare(const std::vector<MeasuredRun>& runs, const PageLanguage& say) {
  const auto best = [&](const MeasuredRun& run) { return best_of(run, say); };
  Comparison all;
  all.results = {
      row_of(runs, "", [](const MeasuredRun& run) { return run.path; }),
      row_of(runs, say("step", "ステップ"), [](const MeasuredRun& run) { return with_separators(run.state.step); }),
      row_of(runs, say("best validation loss", "最良の検証損失"), best),
      row_of(runs, say("training time", "学習時間"), time_of)};
  const auto add = [&](const std::string& name, const auto& text) {
    const TableRow row = row_of(runs, name, text);
    const bool equal = std::adjacent_find(row.begin() + 1, row.end(), std::not_equal_to<>()) == row.end();
    (equal ? all.equal : all.different).push_back(row);
  };
  add("text", [](const MeasuredRun& run) { return run.state.corpus_hash; });
  for (const Field& field : fields())
    if (field.is_training())
      add(field.name, [&](const MeasuredRun& run) { return option_text(run.state.config, field); });
  const auto add_recorded = [&](const char* name, const auto& text) {
    if (std::ranges::any_of(runs, [&](const MeasuredRun& run) { return !text(run).empty(); })) add(name, text);
  };
  add_recorded("init_from", [](const MeasuredRun& run) { return run.state.config.init_from; });
  add_recorded("taught_by", [](const MeasuredRun& run) { return run.state.config.taught_by; });
  add_recorded("phases", [](const MeasuredRun& run) {
    return run.state.config.phases.empty() ? "" : phases_text(run.state.config);
  });
  return all;
}

}  // namespace maki
