#include "train/app/verbs/measured.h"

#include <algorithm>
#include <array>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <unistd.h>

#include "autograd/core/check.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "train/app/draw/curve.h"
#include "train/app/progress.h"
#include "train/app/report.h"
#include "train/app/report/measured_run.h"

namespace maki {
namespace {

// The first cells of each row.
void print_rows(const std::vector<TableRow>& rows, const std::vector<std::size_t>& widths, std::size_t cells) {
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < cells; ++i) {
      line += row[i];
      const auto width = static_cast<std::size_t>(display_width(row[i]));
      if (i + 1 < cells) line.append(widths[i] > width ? widths[i] - width + 2 : 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    print_result(line + "\n");
  }
}

// Values such as the phases of a planned run would make lines of hundreds of columns.
void shorten(std::vector<TableRow>& rows) {
  constexpr std::size_t kMostBytes = 40;  // more than a hash has
  for (TableRow& row : rows)
    std::transform(row.begin() + 1, row.end(), row.begin() + 1,
                   [](const std::string& value) { return truncate_for_message(value, kMostBytes); });
}

Json to_json(const MeasuredRun& run) {
  Json facts{{"path", run.path},
             {"step", run.state.step},
             {"corpus_hash", run.state.corpus_hash},
             {"elapsed_seconds", run.history.elapsed_seconds()},
             {"config", training_json(run.state.config)}};
  if (run.best) {
    facts["best_step"] = run.best->step;
    facts["best_val_loss"] = run.best->loss;
    if (const auto share = share_of_best(run)) facts["best_val_share"] = *share;
  }
  return facts;
}

}  // namespace

Json training_json(const Config& config) {
  Json facts;
  for (const Field& field : fields()) {
    if (!field.is_training()) continue;
    std::visit([&](const auto& value) { facts[field.name] = value; }, field.value(config));
  }
  if (!config.init_from.empty()) facts["init_from"] = config.init_from;
  for (const Phase& phase : config.phases) {
    facts["phases"].push_back({{"start", phase.start},
                               {"end", phase.end},
                               {"learning_rate", phase.learning_rate},
                               {"min_lr", phase.min_lr},
                               {"warmup_steps", phase.warmup_steps}});
  }
  return facts;
}

std::string curve_text(const RunHistory& history, double best_possible_loss) {
  if (history.steps().empty()) return "";
  const CurveSubject subject{history, history.steps().back().step.step,
                             best_possible_loss > 0 ? std::optional(best_possible_loss) : std::nullopt};
  const CurveStyle style{terminal_size(STDOUT_FILENO).columns - 1, /*rows=*/10, locale_has_utf8()};
  return fmt::format("{}", fmt::join(draw_curve(subject, style), "\n"));
}

std::string measurements_csv(const RunHistory& history) {
  constexpr std::size_t kTraining = 6;  // columns of the lines about training; those of evaluations follow
  std::map<std::int64_t, std::array<std::string, kTraining + 3>> rows;
  for (const LoggedStep& each : history.steps()) {
    auto& row = rows[each.step.step];
    const double values[kTraining] = {each.step.loss,         each.step.learning_rate,
                                      each.step.grad_norm,    static_cast<double>(each.step.tokens),
                                      each.tokens_per_second, each.elapsed_seconds};
    std::ranges::transform(values, row.begin(), short_number);
  }
  for (const EvalReport& report : history.evals()) {
    auto& row = rows[report.step];
    row[kTraining] = short_number(report.train_loss);
    if (report.val_loss) row[kTraining + 1] = short_number(report.point().loss);  // comparable with the others
    if (report.val_accuracy) row[kTraining + 2] = short_number(*report.val_accuracy);
  }
  std::string text =
      "step,loss,learning_rate,grad_norm,tokens,tokens_per_second,elapsed_seconds,train_loss,val_loss,val_accuracy\n";
  for (const auto& [step, row] : rows) text += fmt::format("{},{}\n", step, fmt::join(row, ","));
  return text;
}

void compare_runs(const std::vector<std::string>& paths, bool json) {
  const std::vector<MeasuredRun> runs = read_measured_runs(paths);
  Comparison compared = compare(runs, PageLanguage("en"));
  if (json) {
    Json all{{"differences", Json::array()}, {"runs", Json::array()}};
    for (const TableRow& row : compared.different) all["differences"].push_back(row.front());
    for (const MeasuredRun& run : runs) all["runs"].push_back(to_json(run));
    return print_result(json_text(all, 2));
  }
  shorten(compared.different);
  shorten(compared.equal);
  std::vector<TableRow> rows = compared.different;
  rows.insert(rows.begin(), compared.results.front());  // the paths
  rows.insert(rows.end(), compared.results.begin() + 1, compared.results.end());
  std::vector<std::size_t> widths(runs.size() + 1);
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], static_cast<std::size_t>(display_width(row[i])));
  }
  print_rows(rows, widths, widths.size());
  print_result("\nequal in all of them:\n");
  print_rows(compared.equal, widths, 2);
}

}  // namespace maki
