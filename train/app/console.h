// What a user sees of a training session: lines that stay in place on a terminal, plain lines otherwise, all on stderr.
#pragma once

#include <optional>
#include <string>

#include "train/app/progress.h"
#include "train/run/listener.h"

namespace maki {

/// What was planned for a run with a time limit.
struct PlannedRun {
  double expected_loss = 0;  ///< as a part of what counting alone reaches; 0: not known
};

class Console final : public SessionListener {
 public:
  /// `run` is the path of the run directory, for the commands that are suggested; `best_possible_loss` is that of the
  /// task, nullopt if it is not known; `peak_tokens_per_second` the rate at which products alone could go, 0 if it was
  /// not measured. A run without a plan is told how long its steps will take.
  Console(std::int64_t max_steps, std::string run, std::optional<double> best_possible_loss,
          std::optional<PlannedRun> plan = std::nullopt, double peak_tokens_per_second = 0);

  void on_counting(const CountingReport& report) override;
  void on_start(std::int64_t step, const RunHistory& history) override;
  void on_new_length(std::int64_t step, std::int64_t max_steps) override;
  void on_step(const StepReport& report, double seconds) override;
  void on_log(const StepReport& report, double tokens_per_second, double elapsed_seconds) override;
  void on_eval(const EvalReport& report, bool best) override;
  void on_sample(std::int64_t step, const std::string& text) override;
  void on_overfitting(std::int64_t best_step, bool ends) override;
  void on_note(const std::string& sentence) override;
  void on_interrupt(std::int64_t step, bool evaluates) override;
  void on_finish(std::int64_t step, double elapsed_seconds, double passes) override;
  void on_best(std::int64_t step, double loss, double share) override;

 private:
  void estimate_time(std::int64_t step, double seconds);
  std::string loss_text(double loss) const;
  std::optional<double> lower_first_loss(std::int64_t step) const;
  std::string beside_counting(double loss, double share) const;
  std::vector<std::string> facts() const;
  std::vector<std::string> curve(const TerminalSize& size) const;

  std::int64_t max_steps_;
  std::optional<PlannedRun> plan_;
  std::string run_;
  std::optional<double> best_possible_loss_;
  std::optional<CountingReport> counting_;
  double tokens_per_character_ = 1;  // of the validation text, once that is known
  double peak_tokens_per_second_;
  const RunHistory* history_ = nullptr;  // from on_start() on
  Progress progress_;
  std::int64_t steps_ = 0;       // of this session, up to the estimate
  double estimate_seconds_ = 0;  // of those after the first
};

}  // namespace maki
