#include "train/loop/best_checkpoint.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "train/run/checkpoint.h"

namespace maki {

BestCheckpoint::BestCheckpoint(Trainer& trainer, const RunDirectory& run, std::int64_t first,
                               std::function<bool(std::int64_t)> is_intact,
                               std::function<void(const std::string&)> note)
    : trainer_(trainer),
      run_(run),
      first_(first),
      is_intact_(std::move(is_intact)),
      note_(std::move(note)),
      share_(trainer.task().eval_batches(Part::val) > 0 ? trainer.val_share() : 1),  // 1: nothing is compared
      initial_pointer_(run.best()) {}

// Losses over different shares of the data cannot be compared. If any evaluation covered another share than evaluations
// do now, the checkpoint that `best` names is taken, because all losses covered the same share when it was set; if it
// cannot be used, losses of different shares are compared after all. Its loss in the pointer may cover another share
// than the line of its step, if it was measured again after the share had changed.
std::optional<EvalPoint> BestCheckpoint::candidate(std::vector<EvalPoint> evaluations, bool pointer_is_usable) const {
  const auto pointer_with_share = [this](double share) {
    return EvalPoint{initial_pointer_->step, initial_pointer_->loss, share, /*train_loss=*/0};
  };
  const auto has_share = [this](const EvalPoint& evaluation) { return evaluation.share == share_; };
  if (pointer_is_usable && !std::ranges::all_of(evaluations, has_share)) {
    const auto line = std::ranges::find(evaluations, initial_pointer_->step, &EvalPoint::step);
    return line == evaluations.end() ? pointer_with_share(0) : *line;
  }
  // A session sets the pointer before it writes the line of the evaluation. If it was killed in between, only the
  // pointer has the loss. (The loss of a line is preferred: that of the pointer may cover another share.)
  if (pointer_is_usable &&
      std::ranges::find(evaluations, initial_pointer_->step, &EvalPoint::step) == evaluations.end())
    evaluations.insert(evaluations.begin(), pointer_with_share(share_));
  std::ranges::stable_sort(evaluations, {}, &EvalPoint::loss);
  const auto intact = std::ranges::find_if(evaluations, is_intact_, &EvalPoint::step);
  return intact == evaluations.end() ? std::nullopt : std::optional(*intact);
}

// The pointer `best` may name another checkpoint than the best: after falling back to an earlier checkpoint it may name
// a later step, or its file may be gone.
void BestCheckpoint::explain_pointer(bool usable) const {
  if (!initial_pointer_ || usable) return;
  note_(fmt::format("best points to step {}, {}; {}", initial_pointer_->step,
                    initial_pointer_->step > trainer_.steps() ? "which this run has not reached"
                    : initial_pointer_->step < first_         ? "whose weights are untrained"
                                                              : "whose checkpoint is missing or damaged",
                    best_ ? fmt::format("the best is now step {}", best_->step) : "there is no best now"));
}

void BestCheckpoint::find(std::vector<EvalPoint> evaluations, const StopRequest& stop) {
  std::erase_if(evaluations, [&](const EvalPoint& evaluation) { return evaluation.step < first_; });
  const bool usable = initial_pointer_ && initial_pointer_->step >= first_ &&
                      initial_pointer_->step <= trainer_.steps() && is_intact_(initial_pointer_->step);
  const std::optional<EvalPoint> found = candidate(std::move(evaluations), usable);
  if (found) best_ = BestPointer{found->step, found->loss};
  explain_pointer(usable);
  if (found && found->share != share_) {
    if (const auto loss = measure(found->step, /*whole=*/false, stop)) {
      best_->loss = *loss;
      note_(
          fmt::format("measured the best checkpoint (step {}) again, over the {:.3g}% of the validation text that "
                      "evaluations cover from here on: {:.4f}",
                      found->step, 100 * share_, *loss));
    }
  }
  if (best_ && (!initial_pointer_ || initial_pointer_->step != best_->step || initial_pointer_->loss != best_->loss))
    run_.set_best(*best_);
  if (initial_pointer_ && !best_) run_.clear_best();
}

bool BestCheckpoint::is_improved_by(const EvalPoint& evaluation) const {
  return evaluation.step >= first_ && (!best_ || evaluation.loss < best_->loss);
}

void BestCheckpoint::set(const EvalPoint& evaluation) {
  best_ = BestPointer{evaluation.step, evaluation.loss};
  run_.set_best(*best_);
}

std::optional<double> BestCheckpoint::measure(std::int64_t step, bool whole, const StopRequest& stop) {
  const auto load = [this](std::int64_t of_step) {
    load_values(ContainerReader(run_.checkpoint_file(of_step), run_.file_system()), trainer_.store());
  };
  const auto load_own = [&] {
    if (step != trainer_.steps()) load(trainer_.steps());
  };
  try {
    load(step);
    const auto loss = trainer_.validation_loss(stop, whole);
    load_own();
    return loss;
  } catch (const RankError&) {
    throw;
  } catch (const Error&) {
    load_own();
    throw;
  }
}

}  // namespace maki
