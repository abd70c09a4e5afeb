// Which checkpoint of a run is the best: tracked while a session trains, and determined anew when a run is resumed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/loop/trainer.h"
#include "train/run/run_directory.h"

namespace maki {

/// The loss of the best checkpoint is over the share of the validation data that every evaluation covers, unless find()
/// was stopped.
class BestCheckpoint {
 public:
  /// No step before `first` is the best (first_learned_step()). `is_intact` tells whether the checkpoint of a step
  /// exists, is intact and belongs to this run; `note` receives sentences for the user. Requires: the arguments outlive
  /// this object.
  BestCheckpoint(Trainer& trainer, const RunDirectory& run, std::int64_t first,
                 std::function<bool(std::int64_t step)> is_intact,
                 std::function<void(const std::string& sentence)> note);

  /// Finds the best of these evaluations whose checkpoint is intact, and points `best` to it; removes the pointer if
  /// there is none. If its evaluation covered a different share of the validation data than evaluations do from now on,
  /// the checkpoint is measured again; a requested `stop` ends that, and the old loss remains. Throws what measure()
  /// throws, and CheckpointError if the pointer cannot be written. Requires: the checkpoint of the trainer's step
  /// exists.
  void find(std::vector<EvalPoint> evaluations, const StopRequest& stop);

  const std::optional<BestPointer>& best() const { return best_; }
  /// Whether the loss is lower than that of the best; of equal losses the first is the best.
  bool is_improved_by(const EvalPoint& evaluation) const;
  /// Makes this evaluation the best and points `best` to its checkpoint, which the caller has saved. Throws
  /// CheckpointError.
  void set(const EvalPoint& evaluation);

  /// The validation loss of the checkpoint of a step, over the usual share or the `whole` data; nullopt if `stop`
  /// is requested. Requires: the checkpoint of the trainer's step exists, from which the trainer's own values are
  /// loaded again afterwards. Throws CheckpointError if a checkpoint cannot be read (CorruptFile if it is damaged) and
  /// DivergedError if the loss is not finite; the trainer then has the values of `step` only if its own cannot be read.
  std::optional<double> measure(std::int64_t step, bool whole, const StopRequest& stop);

 private:
  std::optional<EvalPoint> candidate(std::vector<EvalPoint> evaluations, bool pointer_is_usable) const;
  void explain_pointer(bool usable) const;

  Trainer& trainer_;
  const RunDirectory& run_;
  std::int64_t first_;
  std::function<bool(std::int64_t)> is_intact_;
  std::function<void(const std::string&)> note_;
  double share_;
  std::optional<BestPointer> initial_pointer_;  // what the pointer `best` contained when the session began
  std::optional<BestPointer> best_;
};

}  // namespace maki
