// The start of a run that is planned: its fields are chosen in two parts, before its task exists and after.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "train/app/console.h"
#include "train/app/plan_run.h"
#include "train/app/shared_run.h"
#include "train/app/train_options.h"
#include "train/loop/session.h"
#include "train/loop/task.h"

namespace maki {

class PlannedStart {
 public:
  using Clock = std::chrono::steady_clock;

  /// The run may take `minutes` from `start` on. The options outlive this object.
  PlannedStart(const TrainOptions& options, double minutes, Clock::time_point start)
      : options_(options), seconds_(60 * minutes), start_(start), timer_(options.flags) {}

  /// Chooses the model, unless its weights are given, and for models of text also the number of steps. `tokenizer`: the
  /// one that is given, or null. Throws what make_plan() throws.
  void choose_model(Config& config, const Corpus& corpus, const std::shared_ptr<const Tokenizer>& tokenizer);
  /// Chooses the number of steps if that is still open, and shows what was chosen. Throws what plan_length() throws.
  void choose_length(Config& config, const Task& task);

  /// What the session has to know of the time and records of the plan; `record` is TimeLimit::record. This and facts()
  /// require choose_length().
  SessionOptions session_options(std::function<void(const Config&)> record) const;
  PlannedRun facts() const { return {.expected_loss = plan_->by_heart ? 0 : plan_->expected_loss}; }

 private:
  double left() const;
  std::string explanation() const;  // in lines
  PlanRequest request(const Config& config) const;

  const TrainOptions& options_;
  double seconds_;
  Clock::time_point start_;
  SharedStepTimer timer_;
  std::optional<Plan> plan_;
  bool has_length_ = false;
};

}  // namespace maki
