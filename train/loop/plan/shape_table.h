// The sizes of models that a plan chooses from, and what each of them can be expected to learn from a number of tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "train/loop/plan/text_facts.h"
#include "train/run/config/config.h"

namespace maki {

/// Texts with a larger vocabulary, such as Japanese characters (3,000), need shorter n-grams and lower learning rates;
/// those with the characters of an alphabet or 512 byte pairs do not.
inline constexpr std::int64_t kManyTokens = 512;

/// From fewer characters of training text than this, only the smallest network on a prior learns more than it forgets,
/// and only at low rates (choose_optimizer() in plan.cpp).
inline constexpr double kVeryShortText = 50'000;

/// Training texts with fewer tokens than this are short: tables alone read them a little more than once, and a network
/// with tables was not tried on them.
inline constexpr double kShortText = 300'000;

/// What a model learns with.
enum class Recipe : std::uint8_t {
  /// N-gram tables and AdamW: fast, but they learn a text by heart when they read it again.
  tables,
  /// Short convolutions, normalized queries and keys, and Muon: slower, and goes on learning for several passes.
  network,
  /// Both: learns most from one pass that there is time for.
  network_with_tables,
  /// The network without tables, on top of an n-gram count of the text (nn/prior.h): learns most of all, and is
  /// never worse than counting, but the text must be counted first.
  prior
};

/// The loss after D million tokens of a text that is hardly read twice: floor + slope · D^exponent, in nats per token
/// of the text to which it was fitted. It serves to compare shapes. If the exponent is positive, the slope is negative,
/// and the loss falls up to `most` million tokens; it changes by `longer` if the training text is e times as long.
struct LossCurve {
  double floor, slope, exponent = -0.36, most = 1e6, longer = 0;
};

struct ModelShape {
  Recipe recipe;
  std::int64_t n_layer, n_head, n_embd, block_size;
  LossCurve curve;
  std::int64_t rows = 12;  ///< of a batch; not of tables, for which a plan finds a number

  /// More for tables if the vocabulary is larger than kManyTokens, because its n-grams are rarer, and for tables alone
  /// if the training text is short, because they may read it only once.
  double expected_loss(double tokens, std::int64_t vocabulary, double train_tokens) const;
  /// The most passes over a training text of this length that help. If counts teach (`taught`), networks wider than 64
  /// gain from more, except on a short text.
  double most_passes(double train_tokens, bool taught) const;
};

/// Whether the network may have an n-gram count of the text as its prior.
enum class PriorUse : std::uint8_t { no, possible, certain };

/// What is to be learned, once the tokens are chosen.
struct LearnedText {
  std::int64_t tokens = 0, vocabulary = 0;
  double train_tokens = 0, train_characters = 0;
  PriorUse prior = PriorUse::no;
  bool by_heart = false;  ///< the text is so short that it is to be known, not predicted
  /// The share of the time for the counts of many contexts that may teach (train --teacher @counts); infinity if they
  /// may not.
  double counts_share = std::numeric_limits<double>::infinity();
};

/// Rows are in ascending order of the arithmetic of a token within each recipe. `counting` is what an n-gram count
/// reaches on the text to which the curves were fitted.
struct ShapeTable {
  std::span<const ModelShape> shapes;
  double counting;
};
/// The table for the tokens of a configuration.
ShapeTable shape_table(const Config& config, const LearnedText& text);

/// What was measured of the tokens of a kind of tokenizer: a row of the table in shape_table.cpp.
struct PlannedTokens {
  const char* name;
  std::string (*reason)(const TextFacts& text);  ///< to choose them
  /// The shapes that were fitted to such tokens, and whether a text has them; else it has those of characters.
  ShapeTable shapes = {};
  bool (*have_shapes)(const Config& config, const LearnedText& text) = nullptr;
  bool needs_prior = false;            ///< whether characters are better tokens without a prior
  PriorUse prior = PriorUse::certain;  ///< if the text and the time allow it
  bool tables = true;                  ///< whether n-gram tables help
  double rate_of_many = 0.5;           ///< share of the usual learning rate for more than kManyTokens
  /// The fewest passes of a network without a prior that need weak and strong dropout.
  double few_passes = 2, many_passes = 4;
};
/// The row of this name, or if there is none, that of characters.
const PlannedTokens& planned_tokens(std::string_view tokenizer);

}  // namespace maki
