#include "train/plan/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "data/ngram/ngram_model.h"
#include "optim/muon.h"
#include "train/config/number.h"
#include "train/loop/estimate.h"
#include "train/loop/trainer.h"
#include "train/plan/expected_time.h"
#include "train/plan/shapes.h"

namespace maki {
namespace {

// Chooses one group of fields after the other. In the comments, "4 x 64" is a network of 4 layers of width 64.
class Planner {
 public:
  Planner(const PlanRequest& request, StepTimer& timer) : request_(request), timer_(timer) {
    plan_.config = request.config;
  }

  Plan make() {
    choose_tokenizer();
    choose_model();
    choose_validation();
    choose_optimizer();
    choose_dropout();
    choose_steps();
    return std::move(plan_);
  }

 private:
  struct Value {
    const char* field;
    std::string text;
  };
  bool is_fixed(std::string_view field) const { return request_.is_fixed && request_.is_fixed(field); }
  void choose(const std::vector<Value>& values, const std::string& reason);
  void record(const std::vector<std::string>& fields, const std::string& reason);
  double steps_per_pass() const;
  double used() const { return used_share(request_.text, tokens_, plan_.config.block_size); }
  void choose_tokenizer();
  bool can_have_prior(std::int64_t tokens) const;
  void choose_prior();
  void choose_tables();
  void choose_batch();
  void choose_model();
  void choose_validation();
  void choose_optimizer();
  void choose_dropout();
  void choose_intervals(std::int64_t steps);
  void choose_steps();

  const PlanRequest& request_;
  StepTimer& timer_;
  Plan plan_;
  ModelShape shape_ = model_shapes().front();
  std::int64_t tokens_ = 0, vocabulary_ = 0;
  double train_tokens_ = 0, seconds_per_step_ = 0;
};

// Sets those of the fields that the user has not fixed.
void Planner::choose(const std::vector<Value>& values, const std::string& reason) {
  std::vector<std::string> fields;
  for (const Value& value : values) {
    if (is_fixed(value.field)) continue;
    set_field(plan_.config, find_field(value.field), value.text);
    fields.emplace_back(value.field);
  }
  record(fields, reason);
}

void Planner::record(const std::vector<std::string>& fields, const std::string& reason) {
  if (!fields.empty()) plan_.choices.push_back({fields, reason});
}

double Planner::steps_per_pass() const {
  const Config& c = plan_.config;
  return train_tokens_ / used() / static_cast<double>(c.block_size * c.batch_size * c.grad_accum);
}

// Byte pairs are better tokens only on a prior: after a minute of @stories-ja, 1,024 of them with tables have as many
// nats per character as characters.
void Planner::choose_tokenizer() {
  const TextFacts& text = request_.text;
  if (text.tokenizer == "word") {
    choose({{"tokenizer", "word"}},
           fmt::format("of the words in the last tenth of the text, {:.2g}% do not occur before it",
                       100 * text.new_words));
  } else if (text.tokenizer == "bpe" && !is_fixed("tokenizer") && can_have_prior(text.tokens)) {
    choose({{"tokenizer", "bpe"}, {"vocab_size", fmt::format("{}", text.vocabulary)}},
           fmt::format("{} are {} of frequent sequences", pluralize(text.characters, "character"),
                       pluralize(text.tokens, "token")));
  } else {
    const bool rare = text.tokenizer == "byte";
    choose({{"tokenizer", rare ? "byte" : "char"}},
           fmt::format("{}, {} of them different{}", pluralize(text.characters, "character"),
                       with_separators(text.distinct), rare ? ": too few of each to be learned" : ""));
  }
  const std::string& tokenizer = plan_.config.tokenizer;
  tokens_ = tokenizer == "byte" ? text.bytes : tokenizer == "char" ? text.characters : text.tokens;
  vocabulary_ = tokenizer == "byte" ? kByteValues : tokenizer == "char" ? text.distinct : text.vocabulary;
  train_tokens_ = std::max(1.0, static_cast<double>(tokens_) * (1 - plan_.config.val_fraction));
}

// Whoever asks for tables gets the recipes with tables. The counts alone know more than a few seconds of training, but
// some time must be left to the network.
bool Planner::can_have_prior(std::int64_t tokens) const {
  constexpr double kShare = 0.5;
  for (const char* const field : {"ngram_orders", "ngram_rows", "ngram_dropout", "ngram_lr_factor"}) {
    if (is_fixed(field)) return false;
  }
  if (is_fixed("ngram_prior") && plan_.config.ngram_prior == 0) return false;
  return prior_seconds(tokens) <= kShare * request_.seconds;
}

// Characters and words that repeat themselves are learned better without a prior: 2 x 64 has 1.48 nats per word of
// @stories after 600 steps, and 1.57 with a prior; after a minute, @stories-ja has 0.634 nats per character, and 0.686
// with a prior. With a large vocabulary, the priors of a batch take hundreds of megabytes.
void Planner::choose_prior() {
  constexpr std::int64_t kMostTokens = 8192;
  const std::string& tokenizer = plan_.config.tokenizer;
  const bool repeats = tokenizer == "word" || (tokenizer != "bpe" && request_.text.new_ngrams <= kFewNewNgrams);
  if (repeats || vocabulary_ > kMostTokens || !can_have_prior(tokens_)) return;
  choose({{"ngram_prior", fmt::format("{}", kMaxCountedNgram)}},
         fmt::format(
             "counting the n-grams of the text takes about {:.1g} s, and leaves to the network what counts do not know",
             prior_seconds(tokens_)));
}

// How long n-grams can be is a question of how often they occur again: with 3 besides 2, and so on, the loss on 20,000,
// 100,000 and 1,000,000 characters of tinyshakespeare is lowest for up to 3, 4 and 5.
void Planner::choose_tables() {
  constexpr double kShort = 50'000, kLong = 300'000;
  constexpr std::uint64_t kFewestRows = 1024, kMostRows = 65536;
  constexpr double kSecondsForLargeTables = 20;  // they make checkpoints of more than 100 MB
  const bool many = vocabulary_ > kManyTokens;
  const std::uint64_t most_rows = many && request_.seconds >= kSecondsForLargeTables ? 4 * kMostRows : kMostRows;
  const int longest = many || train_tokens_ < kShort ? 3 : train_tokens_ < kLong ? 4 : 5;
  const std::uint64_t rows =
      std::clamp(std::bit_ceil(static_cast<std::uint64_t>(train_tokens_)), kFewestRows, most_rows);
  choose({{"ngram_orders", longest == 3   ? "2,3"
                           : longest == 4 ? "2,3,4"
                                          : "2,3,4,5"},
          {"ngram_rows", fmt::format("{}", rows)},
          {"ngram_lr_factor", shape_.recipe == Recipe::tables ? "30" : "15"}},
         fmt::format("longer n-grams than those of {} hardly occur again in {}", pluralize(longest, "token"),
                     pluralize(tokens_, "token")));
}

// Large batches would leave a short text too few steps: 100,000 characters have 1.594 with 4 rows and 1.603 with 12.
void Planner::choose_batch() {
  constexpr double kFewestSteps = 450;  // gives that text 4 rows
  constexpr std::int64_t kFewestRows = 3, kMostRows = 12;
  const Config& c = plan_.config;
  const double tokens =
      shape_.most_passes(train_tokens_) * train_tokens_ / used() / static_cast<double>(c.block_size * c.grad_accum);
  const std::int64_t rows =
      std::clamp<std::int64_t>(std::llround(std::min(tokens / kFewestSteps, 1e6)), kFewestRows, kMostRows);
  choose({{"batch_size", fmt::format("{}", rows)}}, rows < kMostRows
                                                        ? "a short text has too few tokens for many larger steps"
                                                        : "smaller steps take longer per token");
}

void Planner::choose_model() {
  choose_prior();
  const Plan before = plan_;
  if (plan_.config.ngram_prior == 0) choose_tables();
  choose_batch();
  const ShapeChoice choice = choose_shape(plan_.config, request_, vocabulary_, train_tokens_, timer_);
  shape_ = choice.shape;
  seconds_per_step_ = choice.seconds_per_step;
  const auto open = [&](std::initializer_list<const char*> names) {
    std::vector<std::string> fields(names.begin(), names.end());
    std::erase_if(fields, [&](const std::string& name) { return is_fixed(name); });
    return fields;
  };
  if (shape_.recipe != Recipe::tables) {
    plan_ = before;  // without what is chosen for tables alone
    if (shape_.recipe == Recipe::network) {
      record(open({"ngram_orders"}),
             "there is time for several passes, from which a network without tables learns more");
    } else if (shape_.recipe == Recipe::network_with_tables) {
      choose_tables();
    }
    record(open({"batch_size", "positions", "norm", "activation", "bias", "qk_norm", "conv_width"}),
           "there is time for a network that learns more from each token");
  }
  apply_shape(plan_.config, shape_, request_);
  plan_.measured = choice.measured;
  const Config& c = plan_.config;
  record(open({"n_layer", "n_head", "n_embd", "block_size"}),
         fmt::format("a step of {} takes {:.3g} ms; of the shapes that were considered, this one promises most "
                     "in the time",
                     pluralize(c.block_size * c.batch_size * c.grad_accum, "token"), 1e3 * seconds_per_step_));
}

// The last evaluation covers the whole validation text, and counting the whole training text: of a large text, both
// could take longer than training.
void Planner::choose_validation() {
  constexpr double kEnough = 200'000, kShare = 0.1;  // tokens, and a share of the time; chosen without a measurement
  const Config& c = plan_.config;
  const double per_second = 3 * static_cast<double>(c.block_size * c.batch_size * c.grad_accum) / seconds_per_step_;
  const double most = std::max(kEnough, kShare * request_.seconds * per_second) / static_cast<double>(tokens_);
  if (most < c.val_fraction) {
    choose({{"val_fraction", fmt::format("{:.1g}", most)}},
           fmt::format("to evaluate more than that would take over {:.0f}% of the time", 100 * kShare));
    train_tokens_ = static_cast<double>(tokens_) * (1 - c.val_fraction);
  }
  if (plan_.config.ngram_prior == 0 && counting_seconds(plan_.config, tokens_) > 2 * kShare * request_.seconds)
    choose({{"counting", "false"}}, fmt::format("it would take over {:.0f}% of the time", 200 * kShare));
}

void Planner::choose_optimizer() {
  const Config& c = plan_.config;
  // Measured at widths of 64 and 128; the product of width and rate is what stays. Rare tokens need a lower rate, but
  // not the words of @stories: 0.278 instead of 0.314 nats per character.
  constexpr double kWidthTimesRate = 0.512, kHighest = 8e-3;
  const double many = vocabulary_ > kManyTokens && c.tokenizer != "word" ? 0.5 : 1;
  const double rate = many * std::min(kHighest, kWidthTimesRate / static_cast<double>(c.n_embd));
  const std::string usual = shape_.recipe == Recipe::tables ? "adamw" : "muon";
  const std::string optimizer = is_fixed("optimizer") ? c.optimizer : usual;
  check(optimizer != "sgd" || is_fixed("learning_rate"), "plan: knows no learning rate for sgd; add --learning-rate");
  std::vector<Value> values = {{"optimizer", optimizer}, {"learning_rate", fmt::format("{}", rate)}};
  if (optimizer == "muon") values.push_back({"momentum", fmt::format("{}", MuonOptions().momentum)});
  choose(values, fmt::format("for a width of {} and a vocabulary of {}", c.n_embd, with_separators(vocabulary_)));
  choose({{"schedule", "linear"}, {"min_lr", "0"}}, "the learning rate falls to 0 at the end of the time");
}

// A network that reads a text several times would learn it by heart.
void Planner::choose_dropout() {
  constexpr double kFew = 2, kMany = 4, kManyOnPrior = 8;
  const double few = plan_.config.tokenizer == "word" ? kMany : kFew;  // @stories, 2.2 passes: 0.314; with 0.1 0.355
  const double passes = request_.seconds / seconds_per_step_ / steps_per_pass();
  if ((shape_.recipe != Recipe::network && shape_.recipe != Recipe::prior) || passes < few) return;
  // On a prior there is less to learn by heart: after 5.8 passes over tinyshakespeare 4 x 128 has 1.441 nats with 0.1,
  // 1.445 with 0.2; after ten passes over 100,000 characters of prose 4 x 64 has 1.557 and 1.564.
  const bool prior = shape_.recipe == Recipe::prior && train_tokens_ >= kVeryShortText;
  const bool weak = passes < (prior ? kManyOnPrior : kMany) || (prior && plan_.config.n_embd <= 64);
  choose({{"dropout", weak ? "0.1" : "0.2"}},
         fmt::format("{:.2g} passes over the text", std::min(passes, shape_.most_passes(train_tokens_))));
}

// Evaluations, whose losses show whether the model is overfitting, and checkpoints, which limit what a power failure
// costs, may take some hundredths of the time.
void Planner::choose_intervals(std::int64_t steps) {
  constexpr std::int64_t kStepsBetween = 300, kMostEvaluations = 10;  // chosen without a measurement
  const std::int64_t parts = std::clamp<std::int64_t>(steps / kStepsBetween, 2, kMostEvaluations);
  const std::string interval = fmt::format("{}", std::max<std::int64_t>(1, steps / parts));
  choose({{"eval_interval", interval},
          {"eval_batches", "10"},
          {"checkpoint_interval", interval},
          {"sample_interval", fmt::format("{}", std::max<std::int64_t>(1, steps / 2))},
          {"log_interval", fmt::format("{}", std::max<std::int64_t>(1, steps / 50))}},
         "evaluations and checkpoints take some hundredths of the time");
}

void Planner::choose_steps() {
  const double limit = std::round(std::clamp(shape_.most_passes(train_tokens_) * steps_per_pass(), 1.0, kMaxCount));
  const double estimate = std::clamp(request_.seconds / seconds_per_step_, 1.0, limit);
  choose_intervals(static_cast<std::int64_t>(estimate));
  const WorkTimes times = expected_times(plan_.config, vocabulary_, seconds_per_step_);
  const EvalExtent extent =
      eval_extent(plan_.config, std::llround(static_cast<double>(tokens_) / used()), train_tokens_ / used());
  plan_.most_steps = static_cast<std::int64_t>(limit);
  const std::int64_t steps = steps_that_fit(times, plan_.config, extent, 0, plan_.most_steps,
                                            request_.seconds - counting_seconds(plan_.config, tokens_));
  plan_.config.max_steps = steps;
  plan_.config.lr_decay_steps = steps;
  record({"max_steps", "lr_decay_steps"},
         steps < plan_.most_steps
             ? "as many as fit into the time; decided anew after a tenth of it"
             : fmt::format("after {:.3g} passes over a text of this length the model would only learn it by heart",
                           shape_.most_passes(train_tokens_)));
  choose({{"warmup_steps", fmt::format("{}", std::clamp<std::int64_t>(steps / 20, 1, 100))}},
         "a twentieth of the steps");
  plan_.seconds = counting_seconds(plan_.config, tokens_) + seconds_to_finish(times, plan_.config, extent, 0, steps);
  plan_.passes = static_cast<double>(steps) / steps_per_pass();
  plan_.memory_bytes = memory_needed(plan_.config, random_vocab_sizes(plan_.config, vocabulary_)).total();
}

}  // namespace

Plan make_plan(const PlanRequest& request, StepTimer& timer) {
  require_plannable(request.config);
  check(request.seconds > 0, "minutes: no time is left for training; got {:.3g} seconds; allow more", request.seconds);
  return Planner(request, timer).make();
}

}  // namespace maki
