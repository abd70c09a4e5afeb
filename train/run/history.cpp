#include "train/run/history.h"

#include <algorithm>

namespace maki {
namespace {

// nullopt unless the line is complete.
std::optional<CountingReport> counting_line(const MetricsLine& line) {
  const auto order = line.number("order"), val_loss = line.number("val_loss"),
             per_character = line.number("nats_per_character"), train_share = line.number("train_share"),
             val_share = line.number("val_share");
  if (!order || *order < 1 || *order > 100 || !val_loss || !per_character || !train_share || !val_share)
    return std::nullopt;
  return CountingReport{line.step, static_cast<int>(*order), *val_loss, *per_character, *train_share, *val_share};
}

EvalReport eval_line(const MetricsLine& line) {
  return {.step = line.step,
          .train_loss = line.number("train_loss").value_or(0),
          .val_loss = line.number("val_loss"),
          .val_share = line.number("val_share").value_or(0),
          .val_accuracy = line.number("val_accuracy"),
          .sampled_val_loss = line.number("sampled_val_loss"),
          .sampled_val_share = line.number("sampled_val_share").value_or(0)};
}

std::vector<LayerReport> layers_line(const MetricsLine& line) {
  std::vector<LayerReport> layers;
  for (const auto& [name, numbers] : line.lists)
    if (numbers.size() == 2) layers.push_back({name, numbers[0], numbers[1]});
  return layers;
}

constexpr Remark::Kind kRemarkKinds[] = {Remark::Kind::plan, Remark::Kind::session, Remark::Kind::end};

double smoothed_lines(const std::vector<LoggedStep>& steps) {
  return std::max(5.0, static_cast<double>(steps.size()) / 50);
}

}  // namespace

const char* to_string(Remark::Kind kind) {
  constexpr const char* kNames[] = {"plan", "session", "end"};
  return kNames[static_cast<std::size_t>(kind)];
}

void RunHistory::add(const MetricsLine& line) {
  if (line.kind == "eval") on_eval(eval_line(line), false);
  if (line.kind == "sample") on_sample(line.step, line.text);
  if (line.kind == "layers") on_layers(line.step, layers_line(line));
  for (const Remark::Kind kind : kRemarkKinds)
    if (line.kind == to_string(kind))
      on_remark({kind, line.step, line.text, line.number("elapsed_seconds").value_or(0)});
  if (line.kind == "counting") counting_ = counting_line(line);
  const auto loss = line.number("loss");
  if (line.kind != "train" || !loss) return;
  on_log({.step = line.step,
          .loss = *loss,
          .learning_rate = line.number("learning_rate").value_or(0),
          .grad_norm = line.number("grad_norm").value_or(0),
          .tokens = static_cast<std::int64_t>(line.number("tokens").value_or(0))},
         line.number("tokens_per_second").value_or(0), line.number("elapsed_seconds").value_or(elapsed_seconds()));
}

bool RunHistory::is_complete() const {
  if (remarks_.empty()) return true;
  return remarks_.back().kind == Remark::Kind::end && remarks_.back().text != Remark::kInterrupted;
}

double RunHistory::elapsed_seconds() const {
  double elapsed = steps_.empty() ? 0 : steps_.back().elapsed_seconds;
  for (const Remark& remark : remarks_) elapsed = std::max(elapsed, remark.elapsed_seconds);
  return elapsed;
}

std::vector<EvalPoint> RunHistory::validations() const {
  std::vector<EvalPoint> points;
  for (const EvalReport& report : evals_) {
    if (report.val_loss) points.push_back(report.point());
  }
  return points;
}

bool RunHistory::evaluations_cover(double share) const {
  return std::ranges::all_of(validations(), [share](const EvalPoint& point) { return point.share == share; });
}

std::vector<double> smoothed_losses(const std::vector<LoggedStep>& steps) {
  const double lines = smoothed_lines(steps);
  std::vector<double> smooth;
  double mean = 0, weight = 0;
  for (const LoggedStep& each : steps) {
    const double keep = 1 - 1 / lines;
    mean = keep * mean + (1 - keep) * each.step.loss;
    weight = keep * weight + (1 - keep);
    smooth.push_back(mean / weight);
  }
  return smooth;
}

std::pair<double, double> recent_losses(const std::vector<LoggedStep>& steps) {
  const std::int64_t newest =
      std::min<std::int64_t>(std::ssize(steps), static_cast<std::int64_t>(smoothed_lines(steps)));
  const auto [low, high] = std::minmax_element(steps.end() - newest, steps.end(),
                                               [](const auto& a, const auto& b) { return a.step.loss < b.step.loss; });
  return {low->step.loss, high->step.loss};
}

}  // namespace maki
