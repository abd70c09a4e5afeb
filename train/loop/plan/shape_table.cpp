#include "train/loop/plan/shape_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/table.h"
#include "data/io/number.h"

namespace maki {
namespace {

// In the comments of this file, "4 x 128" is a network of 4 layers of width 128, and losses are in nats per token.
using enum Recipe;
// Fitted to losses on the characters of tinyshakespeare, a million. Tables, 1 x 64: 1.628 after 460,000 tokens, 1.564
// after one pass; 2 x 128 is equal to it there, so that it pays only where there are more tokens. Network with tables,
// 4 x 128: 1.490 after 1.2 passes. Network, 2 x 64: 1.802 after 0.46 passes, 1.635 after 1.5; 4 x 64: 1.765 and 1.583;
// 4 x 128: 1.583 after 1.4, 1.499 after 3.1, 1.482 after 10.5. Prior, 2 x 64: 1.469 after 0.54 passes, 1.459 after 1.8;
// 4 x 64: 1.453 after 0.92, 1.438 after 11.6, 1.427 after 15.3, 1.422 after 40; 4 x 128: 1.498 after 0.15, 1.456 after
// 1.2, 1.441 after 5.8, 1.441 after 7.7. The larger ones are extrapolated.
constexpr std::array kCharacterShapes = {ModelShape{tables, 1, 1, 64, 64, {1.365, 0.199}},
                                         ModelShape{tables, 2, 4, 128, 64, {1.34, 0.231}},
                                         ModelShape{network, 2, 4, 64, 128, {1.315, 0.368}},
                                         ModelShape{network, 4, 4, 64, 128, {1.237, 0.399}},
                                         ModelShape{network_with_tables, 4, 4, 128, 128, {1.198, 0.311}},
                                         ModelShape{network, 4, 4, 128, 128, {1.227, 0.394}},
                                         ModelShape{network_with_tables, 6, 6, 192, 128, {1.143, 0.401}},
                                         ModelShape{network, 6, 6, 192, 128, {1.164, 0.498}},
                                         ModelShape{network_with_tables, 6, 8, 256, 128, {1.095, 0.519}},
                                         ModelShape{network, 6, 8, 256, 128, {1.107, 0.636}},
                                         ModelShape{prior, 2, 2, 64, 128, {1.439, 0.0242}},
                                         ModelShape{prior, 4, 4, 64, 128, {1.41, 0.0415}},
                                         ModelShape{prior, 4, 8, 128, 128, {1.405, 0.0540}},
                                         ModelShape{prior, 6, 12, 192, 128, {1.393, 0.0761}},
                                         ModelShape{prior, 6, 16, 256, 128, {1.385, 0.0934}}};

// Byte pairs of tinyshakespeare, a vocabulary of 512 and 518,000 for training. 2 x 64: 2.809 and 2.725 after 80 and 350
// steps of 1,536 tokens; 4 x 64: 2.723 after 350, 2.707 after 1,000 (three passes, without dropout); 4 x 128: 2.721
// after 350. The larger ones are extrapolated.
constexpr std::array kPairShapes = {
    ModelShape{prior, 2, 2, 64, 128, {2.606, 0.0958}}, ModelShape{prior, 4, 4, 64, 128, {2.585, 0.1105}},
    ModelShape{prior, 4, 8, 128, 128, {2.56, 0.129}}, ModelShape{prior, 6, 12, 192, 128, {2.545, 0.15}},
    ModelShape{prior, 6, 16, 256, 128, {2.535, 0.17}}};

// Words of @stories, 348,000 for training. Network, 2 x 64: 3.66, 2.31, 1.58 and 1.42 after 100, 200, 450 and 850 steps
// of 1,536 tokens; 4 x 64: 3.61, 2.24, 1.52 and 1.37, and 1.35 after 1,600 with a dropout of 0.1; 4 x 128: 1.83 after
// 230, 1.35 after 552. The larger ones are extrapolated. On a prior, 2 x 64 learns almost in proportion to its tokens:
// 2.106, 2.071 and 1.983 after 50, 100 and 200 steps. Counting knows more of a longer text: 2.68 from 35,000
// words, 2.16 from these, 1.70 from ten million.
constexpr std::array kWordShapes = {ModelShape{network, 2, 4, 64, 128, {1.12, 0.285, -1.1}},
                                    ModelShape{network, 4, 4, 64, 128, {1.10, 0.28, -1.1}},
                                    ModelShape{network, 4, 4, 128, 128, {1.02, 0.245, -1.1}},
                                    ModelShape{network, 6, 6, 192, 128, {0.99, 0.245, -1.1}},
                                    ModelShape{network, 6, 8, 256, 128, {0.98, 0.25, -1.1}},
                                    ModelShape{prior, 2, 2, 64, 128, {2.155, -0.49, 0.9, 0.37, -0.137}}};

// 200 steps of 4 windows know a poem of 500 characters and a license of 1,000 by heart.
constexpr std::array kHeartShapes = {ModelShape{network, 2, 4, 64, 128, {0, 1}, /*rows=*/4}};

std::string different_characters(const TextFacts& text) {
  return fmt::format("{}, {} of them different", pluralize(text.characters, "character"),
                     with_separators(text.distinct));
}
std::string rare_characters(const TextFacts& text) {
  return different_characters(text) + ": too few of each to be learned";
}
std::string few_new_words(const TextFacts& text) {
  return fmt::format("of the words in the last tenth of the text, {:.2g}% do not occur before it",
                     100 * text.new_words);
}
std::string frequent_sequences(const TextFacts& text) {
  return fmt::format("{} are {} of frequent sequences", pluralize(text.characters, "character"),
                     pluralize(text.tokens, "token"));
}

bool without_tables(const Config& config, const LearnedText&) { return config.ngram_orders.empty(); }
bool on_prior(const Config&, const LearnedText& text) { return text.prior == PriorUse::certain; }

constexpr PlannedTokens kPlannedTokenRows[] = {
    {"char", different_characters},
    {"byte", rare_characters},
    // With enough time, words are learned better without a prior: 2 x 64 has 1.48 nats per word of @stories after 600
    // steps, and 1.57 with one. Tables add little: 0.387 nats per character after 1.2 passes with them, 0.314 after 2.2
    // passes without. Half the learning rate has 0.314 nats per character, the usual one 0.278. Dropout: 1.54 nats per
    // word after 2.2 passes of 4 x 128, with 0.1 1.74; 1.348 after 7 passes of 4 x 64, with 0.1 1.354.
    {"word",
     few_new_words,
     {kWordShapes, 2.155},
     without_tables,
     /*needs_prior=*/false,
     PriorUse::possible,
     /*tables=*/false,
     /*rate_of_many=*/1,
     /*few_passes=*/8,
     /*many_passes=*/16},
    // After a minute of @stories-ja, 1,024 byte pairs with tables have as many nats per character as characters.
    {"bpe", frequent_sequences, {kPairShapes, 2.834}, on_prior, /*needs_prior=*/true},
};
constexpr Table kPlannedTokens("tokenizer", kPlannedTokenRows);

}  // namespace

const PlannedTokens& planned_tokens(std::string_view tokenizer) {
  const PlannedTokens* const found = kPlannedTokens.find(tokenizer);
  return found != nullptr ? *found : kPlannedTokenRows[0];
}

ShapeTable shape_table(const Config& config, const LearnedText& text) {
  if (text.by_heart) return {kHeartShapes, 1};
  const PlannedTokens& tokens = planned_tokens(config.tokenizer);
  if (tokens.have_shapes != nullptr && tokens.have_shapes(config, text)) return tokens.shapes;
  return {kCharacterShapes, 1.523};
}

double ModelShape::most_passes(double train_tokens, bool taught) const {
  // N-gram tables learn a text by heart when they read it again. With 1 x 64, the validation loss on tinyshakespeare is
  // 1.564 after one pass, 1.575 after 1.2 and 1.584 after 1.5; on its first 100,000 characters 1.623 after 0.9 passes,
  // 1.603 after 1.3, 1.639 after 2.6 and 1.725 after 5.1. Dropout of the tables does not change that.
  constexpr double kShortTextTablesPasses = 1.3, kTablesPasses = 1, kBothPasses = 1.2, kNetworkPasses = 20;
  // Plans of 6 x 192 that counts teach have 1.351 on tinyshakespeare after 20 passes, and 1.340 after 33.
  constexpr double kTaughtPasses = 40;
  // A network of 4 x 128 has 1.960 and 1.627 after 10 passes over 88,000 characters of chat and 100,000 of prose, 1.987
  // after 17 and 1.638 after 15.
  constexpr double kShortTextNetworkPasses = 10;
  // On a prior, 4 x 64 has 1.427 after 15 passes over tinyshakespeare, a million tokens, and 1.422 after 40; over the
  // 310,000 of neko.ja.txt 3.248 after 10 and 3.241 after 20. 2 x 64 has 1.384 after 14 passes over 97,000 characters
  // of a design document and 1.370 after 35; 1.434 after 10 passes over 100,000 of verse and 1.423 after 25.
  constexpr double kTokensPerSmallPass = 25'000, kMaxSmallPasses = 40, kShortTextSmallPasses = 30;
  const bool is_short = train_tokens < kShortText;
  if (recipe == prior && n_embd <= 64)
    return is_short ? kShortTextSmallPasses
                    : std::clamp(train_tokens / kTokensPerSmallPass, kNetworkPasses, kMaxSmallPasses);
  if (recipe == network || recipe == prior) {
    if (is_short) return kShortTextNetworkPasses;
    return taught ? kTaughtPasses : kNetworkPasses;
  }
  if (recipe == network_with_tables) return kBothPasses;
  return is_short ? kShortTextTablesPasses : kTablesPasses;
}

double ModelShape::expected_loss(double tokens, std::int64_t vocabulary, double train_tokens) const {
  // With the tables of 1 x 64, neko.ja.txt has 3.75 after 460,000 tokens, at most 1.2 passes of which help; a network
  // of 4 x 128 has 3.83 after 380,000, before the learning rate has fallen, and 3.50 after 920,000.
  constexpr double kRareNgramsLoss = 0.04, kMillion = 1e6;
  const bool has_tables = recipe == tables || recipe == network_with_tables;
  const double rare = has_tables && vocabulary > kManyTokens ? kRareNgramsLoss : 0;
  // On 100,000 characters of prose, tables have 1.776 after their 1.3 passes, a network 1.627 after 10; on 88,000 of
  // chat 2.097 and 1.960.
  constexpr double kShortTextTablesLoss = 0.1;  // in addition, so that a network is chosen if it has time
  const double few = recipe == tables && train_tokens < kShortText ? kShortTextTablesLoss : 0;
  constexpr double kFittedWords = 348'000;  // of @stories, to which the curves of words were fitted
  const double longer = curve.longer * std::log(train_tokens / kFittedWords);
  const double millions = std::min(std::max(tokens, 1.0) / kMillion, curve.most);
  return rare + few + longer + curve.floor + curve.slope * std::pow(millions, curve.exponent);
}

}  // namespace maki
