#include "train/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include "data/dataset/window_batches.h"
#include "data/io/error.h"
#include "optim/clip.h"
#include "train/run/config/configured_optimizer.h"
#include "train/run/memory_section.h"

namespace maki {

std::unique_ptr<TrainableModel> trainable_model(const Config& config, const Task& task) {
  return std::make_unique<TrainableModel>(config, [&](const Scope& scope) { return task.make_model(scope); });
}

Trainer::Trainer(const Config& config, const Task& task, bool initial_values)
    : Trainer(config, task, trainable_model(config, task), initial_values) {}

Trainer::Trainer(const Config& config, const Task& task, std::unique_ptr<TrainableModel> model, bool initial_values,
                 Team& team)
    : config_(config),
      task_(task),
      team_(team),
      model_(std::move(model)),
      carried_(*model_->model, config.grad_accum, config.batch_size),
      schedule_(lr_phases(config)),
      gradients_(team, *model_, config.grad_accum),
      losses_(static_cast<std::size_t>(config.grad_accum)),
      exceptions_(std::uncaught_exceptions()) {
  if (initial_values) {
    store().seal(static_cast<std::uint64_t>(config.seed));
  } else {
    store().seal_uninitialized();
  }
  if (keeps_rounded_weights(config)) store().keep_rounded_values();
  shared_version_ = store().version();
}

void Trainer::restore(const VerifiedCheckpoint& from) {
  const CheckpointState& state = from.state();
  load_values(from.file(), store());
  load_optimizer(from.file(), state.step, optimizer());
  load_memory(from.file(), carried_, tokens_per_row(state));
  steps_ = state.step;
  lead({.kind = Order::Kind::restore});
  move_state(/*to_leader=*/false);
}

void Trainer::set_phases(std::vector<Phase> phases) {
  config_.phases = std::move(phases);
  schedule_ = lr_phases(config_);
}

// The sum of the losses of one micro-batch, recorded.
Tensor Trainer::loss_of(std::int64_t micro) {
  task_.fill(steps_, micro, batch_);
  const ProductPrecision precision(model().precision);
  const Recording on(tape_, RandomContext{.seed = static_cast<std::uint64_t>(config_.seed),
                                          .step = static_cast<std::uint64_t>(steps_),
                                          .micro_batch = static_cast<std::uint64_t>(micro)});
  return model().loss(batch_, {.ignored = kIgnoredTarget, .label_smoothing = config_.label_smoothing, .sum = true},
                      carried_.of(micro));
}

// The sum of the losses of all micro-batches, in their order, whose gradients are then added; nullopt if a rank is to
// stop. The last backward pass of each rank is part of the exchange, so that all must have decided before it.
std::optional<double> Trainer::sum_micro_batches(double scale, const StopRequest& stop) {
  const FlatRange own = gradients_.own();
  bool stops = stop.requested();
  std::optional<std::string> failed;
  Tensor loss;
  tape_.clear();  // what a step that was abandoned has left
  try {
    for (std::int64_t i = own.begin; i < own.end && !stops; ++i) {
      loss = loss_of(i);
      losses_[static_cast<std::size_t>(i)] = loss.item();
      if (i + 1 == own.end) break;
      tape_.backward(loss, scale);
      gradients_.add();
      stops = stop.requested();
    }
  } catch (const CorpusError& error) {
    failed = error.what();
  }
  if (!all_go_on(team_, stops, failed)) return std::nullopt;
  gradients_.finish(tape_, loss, scale);
  if (team_.size() > 1) {
    Bounds bounds = even_bounds(config_.grad_accum, team_.size());
    for (std::int64_t& bound : bounds) bound *= std::int64_t{sizeof(double)};
    gather_all(team_, raw_bytes(losses_), bounds);
  }
  return std::accumulate(losses_.begin(), losses_.end(), 0.0);
}

std::optional<StepReport> Trainer::step(const StopRequest& stop) {
  const double rate = learning_rate_at(schedule_, steps_);
  lead({.kind = Order::Kind::step, .rate = rate, .heeds_stops = stop.may_be_requested()});
  return run_step(rate, stop);
}

std::optional<StepReport> Trainer::run_step(double rate, const StopRequest& stop) {
  const double scale = 1 / static_cast<double>(std::max<std::int64_t>(1, task_.targets(steps_)));
  optimizer().drop_other_shards();
  CarriedStates::Rewind rewind(carried_);
  gradients_.begin();
  const auto sum = sum_micro_batches(scale, stop);
  if (!sum) return std::nullopt;

  const double loss = *sum * scale, norm = gradients_.norm();
  if (!std::isfinite(loss)) diverged("loss", loss, scale, rewind);
  if (!std::isfinite(norm)) diverged("norm of the gradient", norm, scale, rewind);
  const double row_norm = row_grad_norm(store());
  if (!std::isfinite(row_norm)) diverged("norm of the n-gram gradient", row_norm, scale, rewind);
  optimizer().step(rate, clip_factor(norm, config_.grad_clip));
  rewind.commit();
  ++steps_;
  shared_version_ = store().version();
  return StepReport{steps_, loss, rate, norm, task_.tokens_in_step(steps_ - 1)};
}

// Runs are deterministic, so the same step, repeated with every tensor inspected, finds the tensor that went wrong
// first.
void Trainer::diverged(const char* what, double value, double scale, CarriedStates::Rewind& rewind) {
  rewind.rollback();
  store().clear_gradients();
  tape_.inspect(true);
  const FlatRange own = gradients_.own();
  for (std::int64_t micro = own.begin; micro < own.end && tape_.first_non_finite().empty(); ++micro)
    tape_.backward(loss_of(micro), scale);
  std::string culprit;
  for (const std::string& found : gather_all(team_, tape_.first_non_finite())) {
    if (culprit.empty()) culprit = found;
  }
  tape_.inspect(false);
  store().clear_gradients();
  fail<DivergedError>(
      "diverged: the {} of step {} is {}; the first tensor that is not finite is the {}; nothing was updated or saved",
      what, steps_ + 1, value, culprit.empty() ? "sum of the gradients" : culprit);
}

// A global norm is finite if and only if every element is. The norm of the gradient, which every step checks, is taken
// before the update, so an update that destroys the values is noticed only here.
void Trainer::require_finite(bool batch_is_readable) {
  lead({.kind = Order::Kind::collect});
  move_state(/*to_leader=*/true);
  const auto require = [this](bool finite, const std::string& what) {
    check<DivergedError>(finite, "diverged: after step {} {} not finite; the state was not saved", steps_, what);
  };
  require(std::isfinite(global_norm(store().values())), "the values of the parameters are");
  for (const Moment& moment : optimizer().moments())
    require(std::isfinite(global_norm(moment.values)), fmt::format("the moments {} are", moment.name));
  if (carried_.any()) require(std::isfinite(global_norm(carried_.values())), "the memory of the model is");
  if (steps_ > 0 && batch_is_readable) require(std::isfinite(next_loss()), "the loss of a forward pass is");
}

double Trainer::next_loss() {
  task_.fill(steps_, 0, batch_);
  const ProductPrecision precision(model().precision);
  const AsRecorded rounding;
  const CarriedStates::Rewind rewind(carried_);  // never committed
  return model().loss(batch_, {.ignored = kIgnoredTarget, .sum = true}, carried_.of(0)).item();
}

bool keeps_rounded_weights(const Config& c) {
  return c.dtype == DType::float32 && c.precision == Precision::bfloat16 && ParameterStore::rounded_values_pay();
}

EvalSample eval_sample(const Config& c) {
  constexpr std::int64_t kMaxTrainBatchesPerEval = 20;  // a sample is enough to show overfitting
  if (c.eval_batches >= 0) return {kMaxTrainBatchesPerEval, c.eval_batches};
  const std::int64_t affordable = 3 * c.eval_interval * c.grad_accum / 10;
  const std::int64_t train = std::clamp<std::int64_t>(affordable / 4, 1, kMaxTrainBatchesPerEval);
  return {train, std::max<std::int64_t>(1, affordable - train)};
}

double Trainer::finite_loss(const MeanLoss& loss) const {
  check<DivergedError>(std::isfinite(loss.mean), "diverged: the evaluation loss at step {} is {}", steps_, loss.mean);
  return loss.mean;
}

double Trainer::val_share() const {
  const std::int64_t count = task_.eval_batches(Part::val);
  return static_cast<double>(sampled_batch_count(eval_sample(config_).val, count)) / static_cast<double>(count);
}

std::int64_t Trainer::eval_batches(bool whole) const {
  const EvalSample sample = eval_sample(config_);
  return sampled_batch_count(sample.train, task_.eval_batches(Part::train)) +
         sampled_batch_count(whole ? 0 : sample.val, task_.eval_batches(Part::val));
}

std::optional<double> Trainer::validation_loss(const StopRequest& stop, bool whole) {
  const std::int64_t most = whole ? 0 : eval_sample(config_).val;
  lead({.kind = Order::Kind::mean_loss, .part = Part::val, .most = most, .heeds_stops = stop.may_be_requested()});
  const auto loss = mean_loss(model(), task_, Part::val, most, stop, team_);
  if (!loss) return std::nullopt;
  return finite_loss(*loss);
}

std::optional<double> Trainer::shared_accuracy(std::int64_t most, const StopRequest& stop) {
  if (!task_.has_answers()) return std::nullopt;
  lead({.kind = Order::Kind::accuracy, .most = most, .heeds_stops = stop.may_be_requested()});
  return accuracy(model(), task_, most, stop, team_);
}

std::optional<EvalReport> Trainer::evaluate(const StopRequest& stop, bool whole) {
  const EvalSample sample = eval_sample(config_);
  EvalReport report;
  report.step = steps_;
  lead({.kind = Order::Kind::mean_loss,
        .part = Part::train,
        .most = sample.train,
        .heeds_stops = stop.may_be_requested()});
  const auto train = mean_loss(model(), task_, Part::train, sample.train, stop, team_);
  if (!train) return std::nullopt;
  report.train_loss = finite_loss(*train);
  if (task_.eval_batches(Part::val) == 0) return report;
  report.val_share = val_share();
  const bool both = whole && report.val_share < 1;
  if (both) {
    lead({.kind = Order::Kind::full_and_sampled_loss,
          .part = Part::val,
          .most = sample.val,
          .heeds_stops = stop.may_be_requested()});
    const auto losses = full_and_sampled_loss(model(), task_, Part::val, sample.val, stop, team_);
    if (!losses) return std::nullopt;
    report.sampled_val_share = std::exchange(report.val_share, 1);
    report.val_loss = finite_loss(losses->whole);
    report.sampled_val_loss = finite_loss(losses->sample);
  } else {
    report.val_loss = validation_loss(stop);
    if (!report.val_loss) return std::nullopt;
  }
  report.val_accuracy = shared_accuracy(both ? 0 : sample.val, stop);
  if (task_.has_answers() && !report.val_accuracy) return std::nullopt;
  return report;
}

}  // namespace maki
