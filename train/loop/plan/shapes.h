// Chooses one of the model shapes of shape_table.h and writes it into a configuration.
#pragma once

#include <cstdint>
#include <vector>

#include "train/loop/plan/plan.h"
#include "train/loop/plan/shape_table.h"

namespace maki {

/// The context, in tokens, for a text of so many tokens that is to be memorized. An epoch (SequenceOrder) drops the
/// remainder of tokens / context, so this is a length with a small remainder, of at most `longest` and half of the
/// text.
std::int64_t block_by_heart(std::int64_t tokens, std::int64_t longest);

/// The longest context, a power of two, for which a text of so many tokens has a window.
std::int64_t longest_window(std::int64_t tokens);

/// Sets the fields of the parts of a block and of the optimizer with which networks learn most in a given time
/// (docs/learning.md): those that the model of `config` has and `request` does not fix. Returns their names.
std::vector<std::string> apply_recipe(Config& config, const PlanRequest& request);

/// Changes heads and width, unless `request` fixes them, such that the heads divide the width and n_kv_head the heads.
void fit_heads(Config& config, const PlanRequest& request);

/// Overwrites the fields of the shape and of its recipe that `request` does not fix, and calls fit_heads(). Turns
/// n-gram tables off, but never on.
void apply_shape(Config& config, const ModelShape& shape, const PlanRequest& request);

/// What each teacher adds to the time of a step, as a part of it: counts, and a network like the one that is taught,
/// which does what a forward pass does.
inline constexpr double kCountsPart = 0.1, kNetworkPart = 0.35;

struct ShapeChoice {
  ModelShape shape;
  double passes;         ///< over the training text, if all of the time were spent on training
  bool taught;           ///< by counts, which take at most half of the time
  StepTime step;         ///< with n-gram tables, if the recipe has them
  double expected_loss;  ///< divided by the loss of counting n-grams alone; below 1 is better
  std::vector<MeasuredShape> measured;
};
/// Measures the smallest shape, and then again and again the shape of lowest expected loss, until that one has been
/// measured or the time for measuring (kMeasuringShare) is used up. For each recipe it picks the measured shape that is
/// best on an idle machine, because what else runs now may soon end; of these it returns the one that is best at the
/// present speed, because a network without a prior that gets too little time is worse than counting. `config` has the
/// fields that no shape sets. Throws what make_plan() throws for memory and timer.
ShapeChoice choose_shape(const Config& config, const PlanRequest& request, const LearnedText& text, StepTimer& timer);

}  // namespace maki
