// Which of the shapes of shape_table.h a plan chooses.
#pragma once

#include <cstdint>
#include <vector>

#include "train/loop/plan/plan.h"
#include "train/loop/plan/shape_table.h"

namespace maki {

/// The context of a text that is learned by heart. The windows of an epoch (SequenceOrder) leave out the tokens that a
/// division by their length leaves over, so it is a length that leaves few, of at most `longest` and half of the text.
std::int64_t block_by_heart(std::int64_t tokens, std::int64_t longest);

/// Overwrites the fields of the shape and of its recipe that `request` does not fix, except those of n-gram tables,
/// which are only turned off. Heads and width adapt to n_kv_head and to each other, as far as they are not fixed.
void apply_shape(Config& config, const ModelShape& shape, const PlanRequest& request);

struct ShapeChoice {
  ModelShape shape;
  StepTime step;         ///< with n-gram tables, if the recipe has them
  double expected_loss;  ///< as a part of what counting alone reaches
  std::vector<MeasuredShape> measured;
};
/// Measures the smallest shape, and then the one that promises the lowest loss, until that is a measured one, or until
/// the time for measuring (kMeasuringShare) is used up. Takes of those that were measured the best of each recipe on
/// an idle machine, because what else runs now may soon end, and returns the best of these at the present speed,
/// because without a prior a network that has too little time is worse than counting. `config` has all other fields.
/// Throws what make_plan() throws for memory and timer.
ShapeChoice choose_shape(const Config& config, const PlanRequest& request, const LearnedText& text, StepTimer& timer);

}  // namespace maki
