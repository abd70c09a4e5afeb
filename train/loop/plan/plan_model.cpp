// The first half of a plan: tokens, prior and model. In the comments, "4 x 64" is a network of 4 layers of width 64.
#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/parallel.h"
#include "data/io/number.h"
#include "data/mixing/held_out_expectations.h"
#include "data/ngram/ngram_model.h"
#include "train/loop/plan/expected_time.h"
#include "train/loop/plan/planner.h"
#include "train/loop/plan/shapes.h"
#include "train/run/config/models.h"

namespace maki {
namespace {

// From fewer characters than this, nothing can be held back that would say how well the rest is learned: whoever trains
// on ten lines wants them to be known.
constexpr std::int64_t kMinCharactersToHoldBack = 2000;

}  // namespace

void Planner::choose_tokenizer() {
  const TextFacts& text = request_.text;
  text_.by_heart = text.characters < kMinCharactersToHoldBack && !is_fixed("val_fraction") &&
                   !is_fixed("ngram_prior") && !request_.wants_tables() && !plan_.config.respect_documents;
  if (text_.by_heart) {
    choose({{"tokenizer", "char"}, {"val_fraction", "0"}},
           fmt::format("{} are so few that the text is learned by heart", pluralize(text.characters, "character")));
  } else {
    const PlannedTokens& best = planned_tokens(text.tokenizer);
    const bool is_best = !best.needs_prior || (!is_fixed("tokenizer") && can_have_prior(text.tokens));
    const std::string chosen = is_best ? text.tokenizer : "char";
    std::vector<Value> values = {{"tokenizer", chosen}};
    if (tokenizer_kind(chosen).has_limit) values.push_back({"vocab_size", fmt::format("{}", text.vocabulary)});
    choose(values, planned_tokens(chosen).reason(text));
  }
  const Vocabulary kind = tokenizer_kind(plan_.config.tokenizer).vocabulary;
  const bool bytes = kind == Vocabulary::bytes, characters = kind == Vocabulary::characters;
  text_.tokens = bytes ? text.bytes : characters ? text.characters : text.tokens;
  text_.vocabulary = bytes ? kByteValues : characters ? text.distinct : text.vocabulary;
  const double trained = 1 - plan_.config.val_fraction;
  text_.train_tokens = std::max(1.0, static_cast<double>(text_.tokens) * trained);
  text_.train_characters = static_cast<double>(text.characters) * trained;
  text_.prior = prior_use();
  if (can_be_taught())
    text_.counts_share =
        HeldOutExpectations::seconds_to_make(std::llround(text_.train_tokens), text_.vocabulary, threads()) /
        request_.seconds;
}

bool chooses_model(const Config& config) {
  const std::vector<std::string> models = planned_models();
  return std::ranges::find(models, config.model) != models.end() && task_rule(config).predicts_next &&
         config.freeze.empty();
}

// The counts alone know more than a few seconds of training, but some time must be left to the network.
bool Planner::can_have_prior(std::int64_t tokens) const {
  constexpr double kMaxCountingShare = 0.5;  // of the time
  if (request_.wants_tables() || is_fixed("ngram_orders")) return false;
  if (is_fixed("ngram_prior") && plan_.config.ngram_prior == 0) return false;
  return prior_seconds(tokens) <= kMaxCountingShare * request_.seconds;
}

PriorUse Planner::prior_use() const {
  // The priors of a batch of 12 x 128 tokens take 100 MB with so many, and a step has kPriorCopies of this size.
  constexpr std::int64_t kMaxPriorVocabulary = 16'384;
  if (is_fixed("ngram_prior") && plan_.config.ngram_prior > 0) return PriorUse::certain;
  if (text_.by_heart || text_.vocabulary > kMaxPriorVocabulary || !can_have_prior(text_.tokens)) return PriorUse::no;
  return planned_tokens(plan_.config.tokenizer).prior;
}

// How long n-grams can be is a question of how often they occur again: with 3 besides 2, and so on, the loss on 20,000,
// 100,000 and 1,000,000 characters of tinyshakespeare is lowest for up to 3, 4 and 5.
void Planner::choose_tables() {
  constexpr double kMinTokensFor4 = 50'000, kMinTokensFor5 = 300'000;   // about geometrically in between
  constexpr std::uint64_t kMinTableRows = 1024, kMaxTableRows = 65536;  // of an order: up to 16 MiB of width 64
  constexpr double kSecondsForLargeTables = 20;                         // they make checkpoints of more than 100 MB
  const bool many = text_.vocabulary > kManyTokens;
  const std::uint64_t most_rows =
      many && request_.seconds >= kSecondsForLargeTables ? 4 * kMaxTableRows : kMaxTableRows;
  const int longest = many || text_.train_tokens < kMinTokensFor4 ? 3 : text_.train_tokens < kMinTokensFor5 ? 4 : 5;
  const std::uint64_t rows =
      std::clamp(std::bit_ceil(static_cast<std::uint64_t>(text_.train_tokens)), kMinTableRows, most_rows);
  choose({{"ngram_orders", longest == 3   ? "2,3"
                           : longest == 4 ? "2,3,4"
                                          : "2,3,4,5"},
          {"ngram_rows", fmt::format("{}", rows)},
          {"ngram_lr_factor", shape_.recipe == Recipe::tables ? "30" : "15"}},
         fmt::format("longer n-grams than those of {} hardly occur again in {}", pluralize(longest, "token"),
                     pluralize(text_.tokens, "token")));
}

// Large batches would leave a short text too few steps: 100,000 characters have 1.594 with 4 rows and 1.603 with 12.
void Planner::choose_batch() {
  constexpr double kMinSteps = 450;                    // gives that text 4 rows
  constexpr std::int64_t kMinRows = 3, kMaxRows = 12;  // with 2 it has 1.604; 12 are those of the quick start
  const Config& c = plan_.config;
  const double tokens = most_passes() * text_.train_tokens / used() / static_cast<double>(c.block_size * c.grad_accum);
  const std::int64_t rows =
      std::clamp<std::int64_t>(std::llround(std::min(tokens / kMinSteps, 1e6)), kMinRows, kMaxRows);
  choose({{"batch_size", fmt::format("{}", rows)}}, rows < kMaxRows
                                                        ? "a short text has too few tokens for many larger steps"
                                                        : "smaller steps take longer per token");
}

void Planner::choose_model() {
  const Plan before = plan_;
  const bool tables = planned_tokens(plan_.config.tokenizer).tables || request_.wants_tables();
  if (tables && !text_.by_heart && text_.prior != PriorUse::certain) choose_tables();
  choose_batch();
  const ShapeChoice choice = choose_shape(plan_.config, request_, text_, timer_);
  shape_ = choice.shape;
  seconds_per_step_ = choice.step.seconds;
  if (shape_.recipe != Recipe::tables) plan_ = before;  // without what is chosen for tables alone
  consider_teacher(choice);
  if (shape_.recipe == Recipe::network_with_tables) choose_tables();
  explain_model(before);
  apply_shape(plan_.config, shape_, request_);
  choose_head();
  plan_.measured = choice.measured;
  plan_.step = choice.step;
  plan_.vocabulary = text_.vocabulary;
  plan_.usual_length = plan_.config.block_size;
  plan_.expected_loss = choice.expected_loss;
  plan_.by_heart = text_.by_heart;
}

// A network learns more from counts of the text in many contexts than from reading the text more often.
bool Planner::can_be_taught() const {
  constexpr double kLongestText = 2e6;
  return (!is_fixed("teacher") || has_counting_teacher(plan_.config)) && text_.train_characters >= kVeryShortText &&
         text_.train_tokens <= kLongestText;
}

void Planner::consider_teacher(const ShapeChoice& choice) {
  if (!is_fixed("teacher") && choice.taught) {
    Config taught = plan_.config;
    set_list(taught, find_field("teacher"), {std::string(kCountingTeacher)});
    Config shaped = taught;
    apply_shape(shaped, choice.shape, request_);
    if (request_.memory && memory_bytes(shaped) > *request_.memory) return;
    plan_.config = taught;
    record({"teacher"}, "a network learns more from counts of many contexts and the text than from the text alone");
  }
  taught_ = choice.taught && has_counting_teacher(plan_.config);
  add_teachers(std::llround(text_.train_tokens), text_.vocabulary);
}

std::int64_t Planner::memory_bytes(const Config& config) const {
  return Choices::memory_bytes(config, random_vocab_sizes(config, text_.vocabulary), std::llround(text_.train_tokens));
}

// The reasons for the fields that apply_shape() sets.
void Planner::explain_model(const Plan& before) {
  const auto open = [&](std::initializer_list<const char*> names) {
    std::vector<std::string> fields(names.begin(), names.end());
    std::erase_if(fields, [&](const std::string& name) { return is_fixed(name); });
    return fields;
  };
  if (shape_.recipe == Recipe::prior) {
    record(open({"ngram_prior"}),
           fmt::format("counting the n-grams of the text takes about {}, and leaves to the network what counts do not "
                       "know",
                       seconds_text(prior_seconds(text_.tokens))));
  } else if (shape_.recipe == Recipe::network && !before.config.ngram_orders.empty()) {
    record(open({"ngram_orders"}), "there is time for several passes, from which a network without tables learns more");
  }
  if (shape_.recipe != Recipe::tables) {
    record(open({"batch_size", "positions", "norm", "activation", "bias", "qk_norm", "conv_width"}),
           "there is time for a network that learns more from each token");
  }
  Config shaped = plan_.config;
  apply_shape(shaped, shape_, request_);
  record(open({"n_layer", "n_head", "n_embd", "block_size"}),
         fmt::format("a step of {} takes {}; of the shapes that were considered, this one promises most "
                     "in the time",
                     pluralize(shaped.block_size * shaped.batch_size * shaped.grad_accum, "token"),
                     milliseconds_text(seconds_per_step_)));
}

// A head of its own begins at zero, so that the first step finds what counting knows (nn/prior.h). With a large
// vocabulary the embeddings of rare tokens are learned better if they are the head as well: neko.ja.txt has 3.311 after
// 150 steps, and 3.316 without.
void Planner::choose_head() {
  constexpr double kMinStepsForTiedHead = 100;  // fewer would go into reaching what counting knows
  if (shape_.recipe != Recipe::prior) return;
  const bool few = training_steps() < kMinStepsForTiedHead || is_very_short();
  if (text_.vocabulary <= kManyTokens || few)
    choose({{"tie_weights", "false"}}, "so that the first step begins with what counting knows");
}

}  // namespace maki
