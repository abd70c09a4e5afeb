// The sizes of models that a plan chooses from, and what each of them can be expected to learn from a number of tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "train/config/config.h"
#include "train/plan/plan.h"

namespace maki {

/// Texts with a larger vocabulary, such as Japanese characters, need shorter n-grams and lower learning rates.
inline constexpr std::int64_t kManyTokens = 512;

/// From fewer training tokens than this, only the smallest network on a prior learns more than it forgets: on the
/// 18,000 characters of a license 2 layers of width 64 have 1.699 nats after five passes with a dropout of 0.2 (median
/// of three seeds), 4 such layers 1.706, and counting alone 1.702.
inline constexpr double kVeryShortText = 50'000;

/// What a model learns with.
enum class Recipe : std::uint8_t {
  /// N-gram tables and AdamW: fast, but they learn a text by heart when they read it again.
  tables,
  /// Short convolutions, normalized queries and keys, and Muon: slower, and goes on learning for several passes.
  network,
  /// Both: learns most from one pass that there is time for.
  network_with_tables,
  /// The same network without tables, on top of an n-gram count of the text (nn/prior.h): learns most of all, and is
  /// never worse than counting, but the text must be counted first.
  prior
};

struct ModelShape {
  Recipe recipe;
  std::int64_t n_layer, n_head, n_embd, block_size;
  /// The loss after D tokens of a text that is hardly read twice is floor + slope · D^−0.36 nats, on a scale that
  /// serves to compare shapes.
  double floor, slope;

  /// More for tables if the vocabulary is larger than kManyTokens, because its n-grams are rarer, and for tables alone
  /// if the training text is short, because they may read it only once.
  double expected_loss(double tokens, std::int64_t vocabulary, double train_tokens) const;
  /// The most passes over a training text of this length that help.
  double most_passes(double train_tokens) const;
};

/// In ascending order of the arithmetic of a token: first those of the other recipes, then those of Recipe::prior.
std::span<const ModelShape> model_shapes();

/// Overwrites the fields of the shape and of its recipe that `request` does not fix, except those of n-gram tables,
/// which are only turned off. Heads and width adapt to n_kv_head and to each other, as far as they are not fixed.
void apply_shape(Config& config, const ModelShape& shape, const PlanRequest& request);

struct ShapeChoice {
  ModelShape shape;
  double seconds_per_step;  ///< with n-gram tables, if the recipe has them
  std::vector<MeasuredShape> measured;
};
/// Measures the smallest shape, and then the one that promises the lowest loss, until that is a measured one, or until
/// the time for measuring (kMeasuringShare) is used up; returns the best of those that were measured. `config` has all
/// other fields; `train_tokens` is the length of the training text. Throws what make_plan() throws for memory and
/// timer.
ShapeChoice choose_shape(const Config& config, const PlanRequest& request, std::int64_t vocabulary, double train_tokens,
                         StepTimer& timer);

}  // namespace maki
