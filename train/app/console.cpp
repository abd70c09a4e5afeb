#include "train/app/console.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

#include "data/io/number.h"
#include "data/io/shell_quote.h"
#include "train/app/draw/curve.h"

namespace maki {
namespace {

// " on 51% of the text", or nothing for the whole text.
std::string share_text(double share) { return share == 1 ? "" : fmt::format(" on {:.3g}% of the text", 100 * share); }

}  // namespace

Console::Console(std::int64_t max_steps, std::string run, std::optional<double> best_possible_loss,
                 std::optional<PlannedRun> plan, double peak_tokens_per_second)
    : max_steps_(max_steps),
      plan_(plan),
      run_(std::move(run)),
      best_possible_loss_(best_possible_loss),
      peak_tokens_per_second_(peak_tokens_per_second),
      progress_(
          max_steps, !is_stderr_terminal(), [this] { return facts(); },
          [this](const TerminalSize& size) { return curve(size); }) {}

// A curve that leaves at least as much of the terminal for what is printed above it.
std::vector<std::string> Console::curve(const TerminalSize& size) const {
  constexpr std::size_t kMinRows = 5, kMaxRows = 10, kOtherRows = 4;  // two above the plot and two of its axis
  if (size.rows / 2 < kMinRows + kOtherRows) return {};
  return draw_curve({*history_, max_steps_, best_possible_loss_},
                    {size.columns - 1, std::min(kMaxRows, size.rows / 2 - kOtherRows), locale_has_utf8()});
}

std::vector<std::string> Console::facts() const {
  if (history_->steps().empty()) return {};
  const std::vector<LoggedStep>& steps = history_->steps();
  const double rate = steps.back().tokens_per_second;
  const std::string speed = fmt::format("{} tokens/s", with_separators(static_cast<std::int64_t>(rate)));
  if (progress_.is_plain()) return {fmt::format("loss {:.4f}", steps.back().step.loss), speed};
  const auto [low, high] = recent_losses(steps);
  std::vector<std::string> all = {
      fmt::format("loss {:.4f} ({:.2f} to {:.2f})", smoothed_losses(steps).back(), low, high)};
  if (!history_->evals().empty() && history_->evals().back().val_loss) {
    const EvalReport& newest = history_->evals().back();
    all.push_back(fmt::format("validation {:.4f}", newest.point().loss));
  }
  all.push_back(speed);
  if (peak_tokens_per_second_ > 0) all.push_back(fmt::format("{:.0f}% of peak", 100 * rate / peak_tokens_per_second_));
  return all;
}

std::string Console::loss_text(double loss) const {
  if (!best_possible_loss_) return fmt::format("{:.4f}", loss);
  return fmt::format("{:.4f} (best possible {:.4f})", loss, *best_possible_loss_);
}

// The validation loss of step 0, if it is lower than that of this step: random weights are never the best checkpoint.
std::optional<double> Console::lower_first_loss(std::int64_t step) const {
  if (history_ == nullptr) return std::nullopt;
  const auto evaluation = [this](std::int64_t of_step) {
    const auto found = std::ranges::find(history_->evals(), of_step, &EvalReport::step);
    return found == history_->evals().end() || !found->val_loss ? std::nullopt : std::optional(found->point());
  };
  const auto first = evaluation(0), later = evaluation(step);
  return first && later && first->share == later->share && first->loss < later->loss ? std::optional(first->loss)
                                                                                     : std::nullopt;
}

void Console::on_counting(const CountingReport& report) {
  counting_ = report;
  tokens_per_character_ = report.val_loss > 0 ? report.nats_per_character / report.val_loss : 1;
  std::string line = report.nats_per_character == report.val_loss
                         ? fmt::format("counting alone: {:.4f} nats per character", report.val_loss)
                         : fmt::format("counting alone: {:.4f} nats per token, {:.4f} per character", report.val_loss,
                                       report.nats_per_character);
  line += fmt::format(", with n-grams of up to {}", pluralize(report.order, "token"));
  if (report.train_share < 1) line += fmt::format(" in {:.3g}% of the training text", 100 * report.train_share);
  if (report.val_share < 1) line += fmt::format(", measured on {:.3g}% of the validation text", 100 * report.val_share);
  if (plan_ && plan_->expected_loss > 0 && plan_->expected_loss < 1)
    line += fmt::format("; about {:.2f} is to be expected of the network", plan_->expected_loss * report.val_loss);
  progress_.print_line(line);
}

void Console::on_start(std::int64_t step, const RunHistory& history) {
  history_ = &history;
  progress_.advance(step);
}

void Console::on_new_length(std::int64_t step, std::int64_t max_steps) {
  max_steps_ = max_steps;
  progress_.set_total(max_steps);
  progress_.print_line(
      fmt::format("step {}: {} fit into the time, and the run ends there", step, pluralize(max_steps, "step")));
}

void Console::on_step(const StepReport& report, double seconds) {
  estimate_time(report.step, seconds);
  progress_.advance(report.step);
}

// Shows an estimate after three steps. The first one is left out, because it allocates memory and is slower.
void Console::estimate_time(std::int64_t step, double seconds) {
  constexpr std::int64_t kTimedSteps = 3;  // so few that the estimate comes early
  constexpr double kSecondsPerDay = 24 * 3600;
  if (plan_ || steps_ == kTimedSteps) return;
  if (++steps_ > 1) estimate_seconds_ += seconds;
  const std::int64_t remaining = max_steps_ - step;
  if (steps_ < kTimedSteps || remaining == 0) return;
  const double each = estimate_seconds_ / (kTimedSteps - 1), all = each * static_cast<double>(remaining);
  progress_.print_line(fmt::format("time   {} per step: about {} for the remaining {}", milliseconds_text(each),
                                   format_duration(all), pluralize(remaining, "step")));
  if (all > kSecondsPerDay) {
    progress_.print_line(
        "warning: this run will take more than a day; lower --max-steps or use a smaller model; Ctrl-C stops it at "
        "any time, and it can be resumed");
  }
}

void Console::on_log(const StepReport& report, double /*tokens_per_second*/, double /*elapsed_seconds*/) {
  progress_.report(report.step);
}

void Console::on_eval(const EvalReport& report, bool best) {
  std::string line = fmt::format("step {}: training loss {:.4f}", report.step, report.train_loss);
  const std::string whole = report.sampled_val_loss ? " on the whole text" : share_text(report.val_share);
  if (report.val_loss) line += fmt::format(", validation {}{}", loss_text(*report.val_loss), whole);
  if (report.sampled_val_loss)
    line += fmt::format(", {:.4f}{}", *report.sampled_val_loss, share_text(report.sampled_val_share));
  if (report.val_accuracy)
    line += fmt::format(", accuracy {:.1f}%{}", 100 * *report.val_accuracy, report.sampled_val_loss ? whole : "");
  if (best && report.step > 0 && !lower_first_loss(report.step)) line += ", the best so far";
  progress_.print_line(line);
}

void Console::on_sample(std::int64_t step, const std::string& text) {
  std::vector<std::string> lines = {fmt::format("step {}: sample of generated text:", step)};
  std::istringstream words(text);
  for (std::string line; std::getline(words, line);) lines.push_back("  | " + line);
  progress_.print_lines(std::move(lines));
}

void Console::on_overfitting(std::int64_t best_step, bool ends) {
  const std::string what = fmt::format(
      "the validation loss has not improved since step {}, while the training loss has fallen: the model is "
      "overfitting",
      best_step);
  progress_.print_line(
      ends ? fmt::format("stopped early: {}; to continue anyway: maki train --resume {} --no-early-stop", what,
                         shell_quote(run_))
           : fmt::format("{}; the best checkpoint is kept", what));
}

void Console::on_note(const std::string& sentence) { progress_.print_line(sentence); }

void Console::on_interrupt(std::int64_t step, bool evaluates) {
  progress_.finish();
  progress_.print_line(fmt::format("interrupted: step {} is saved", step));
  if (evaluates)
    progress_.print_line("evaluating this step, so that the best checkpoint is known; press Ctrl-C again to skip this");
}

void Console::on_finish(std::int64_t step, double elapsed_seconds, double passes) {
  progress_.finish();
  progress_.print_line(fmt::format("done: {} in {}, {:.2f} passes over the text", pluralize(step, "step"),
                                   format_duration(elapsed_seconds), passes));
}

void Console::on_best(std::int64_t step, double loss, double share) {
  const std::string per_character =
      tokens_per_character_ == 1 ? "" : fmt::format(", {:.4f} per character,", loss * tokens_per_character_);
  progress_.print_line(
      fmt::format("best validation loss {}{}{} at step {}", loss_text(loss), share_text(share), per_character, step));
  if (step == 0) {
    if (max_steps_ > 0)
      progress_.print_line("training did not help: the best checkpoint is the one with which the run began");
    return;
  }
  if (const auto first = lower_first_loss(step))
    progress_.print_line(fmt::format(
        "training did not lower the validation loss: it was {:.4f} at step 0, with random weights", *first));
  if (counting_) progress_.print_line(beside_counting(loss, share));
}

// How the loss of the model compares with what counting alone reaches, if both cover the same text.
std::string Console::beside_counting(double loss, double share) const {
  constexpr double kShown = 0.00005;  // less is 0.0000
  const double counting = counting_->val_loss, below = counting - loss;
  if (share != counting_->val_share) {
    const bool whole = counting_->val_share == 1;
    return fmt::format("not compared with counting alone, which has {:.4f}{}", counting,
                       whole
                           ? fmt::format(" on the whole text; maki eval {} measures the model on it", shell_quote(run_))
                           : share_text(counting_->val_share));
  }
  if (std::abs(below) < kShown) return fmt::format("the model is as good as counting alone ({:.4f})", counting);
  if (below > 0) return fmt::format("the model is {:.4f} below counting alone ({:.4f})", below, counting);
  return fmt::format(
      "the model is {:.4f} above counting alone ({:.4f}): an n-gram count predicts this text at least as well", -below,
      counting);
}

}  // namespace maki
