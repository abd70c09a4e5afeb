// The second half of a plan: validation, optimizer and steps. In the comments, "4 x 64" is a network of 4 layers of
// width 64.
#include "train/loop/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

#include "autograd/core/check.h"
#include "data/io/number.h"
#include "optim/make_optimizer.h"
#include "train/loop/plan/expected_time.h"
#include "train/loop/plan/planner.h"
#include "train/loop/trainer.h"
#include "train/run/config/models.h"

namespace maki {

double Planner::steps_per_pass() const {
  const Config& c = plan_.config;
  return text_.train_tokens / used() / static_cast<double>(c.block_size * c.batch_size * c.grad_accum);
}

// The last evaluation covers the whole validation text, and counting the whole training text: of a large text, both
// could take longer than training.
void Planner::choose_validation() {
  constexpr double kEnoughTokens = 200'000;  // of validation text: chance moves their loss by some thousandths of a nat
  constexpr double kMaxTimeShare = 0.1;      // for the last evaluation; twice this for counting
  const Config& c = plan_.config;
  const double per_second = 3 * static_cast<double>(c.block_size * c.batch_size * c.grad_accum) / seconds_per_step_;
  const double most =
      std::max(kEnoughTokens, kMaxTimeShare * request_.seconds * per_second) / static_cast<double>(text_.tokens);
  if (most < c.val_fraction) {
    choose({{"val_fraction", fmt::format("{:.1g}", most)}},
           fmt::format("to evaluate more than that would take over {:.0f}% of the time", 100 * kMaxTimeShare));
    text_.train_tokens = static_cast<double>(text_.tokens) * (1 - c.val_fraction);
  }
  if (plan_.config.ngram_prior == 0 &&
      counting_seconds(plan_.config, text_.tokens) > 2 * kMaxTimeShare * request_.seconds)
    choose({{"counting", "false"}}, fmt::format("it would take over {:.0f}% of the time", 200 * kMaxTimeShare));
}

// Of the optimizers that plans choose, only Muon has these fields; the others are for tables, which it trains as well.
void Planner::suit_optimizer() {
  if (is_fixed("optimizer") || !(is_fixed("muon_lr") || is_fixed("momentum"))) return;
  const OptimizerKind& muon = optimizer_kind("muon");
  plan_.config.optimizer = muon.name;
  if (!is_fixed("momentum")) plan_.config.momentum = *muon.momentum;
}

void Planner::choose_optimizer() {
  const Config& c = plan_.config;
  // Of a very short text there is little to learn that counting does not know, and much to be learned by heart: a
  // license of 35,000 characters has 1.680 by counting, 1.674 after 36 steps at 1e-4, and never less than 1.688 at
  // 3e-4.
  constexpr double kVeryShortTextRate = 1e-4;
  const double many = text_.vocabulary > kManyTokens ? planned_tokens(c.tokenizer).rate_of_many : 1;
  const double usual_rate = many * rate_for_width(c.n_embd);
  const double rate = is_very_short() ? kVeryShortTextRate : usual_rate;
  const OptimizerKind& optimizer = optimizer_kind(c.optimizer);  // that of the shape
  require_known_rate(optimizer);
  std::vector<Value> values = {{"optimizer", optimizer.name}, {"learning_rate", fmt::format("{}", rate)}};
  if (optimizer.momentum > 0) values.push_back({"momentum", fmt::format("{}", *optimizer.momentum)});
  if (optimizer.matrix_rate && is_very_short()) values.push_back({"muon_lr", "0.002"});
  choose(values, is_very_short() ? "of a text this short, higher rates would only learn by heart what counting knows"
                                 : fmt::format("for a width of {} and a vocabulary of {}", c.n_embd,
                                               with_separators(text_.vocabulary)));
  explain_schedule();
}

// A network that reads a text several times would learn it by heart.
void Planner::choose_dropout() {
  constexpr double kManyPassesOnPrior = 8;  // from which on wide networks have a dropout of 0.2
  const PlannedTokens& tokens = planned_tokens(plan_.config.tokenizer);
  const double passes = training_steps() / steps_per_pass();
  if ((shape_.recipe != Recipe::network && shape_.recipe != Recipe::prior) || passes < tokens.few_passes ||
      text_.by_heart)
    return;
  // On a prior there is less to learn by heart: after 5.8 passes over tinyshakespeare 4 x 128 has 1.441 nats with 0.1,
  // 1.445 with 0.2; after ten passes over 100,000 characters of prose 4 x 64 has 1.557 and 1.564.
  const bool prior = shape_.recipe == Recipe::prior && !is_very_short();
  const double strong_from = prior ? kManyPassesOnPrior : tokens.many_passes;
  const bool weak = passes < strong_from || (prior && plan_.config.n_embd <= 64);
  choose({{"dropout", weak ? "0.1" : "0.2"}},
         fmt::format("{} over the text", passes_text(std::min(passes, most_steps() / steps_per_pass()))));
}

// Of a very short text the best step is an early one, which frequent evaluations find.
std::int64_t Planner::evaluations(std::int64_t steps) const {
  constexpr std::int64_t kMinStepsBetween = 300;  // an evaluation of ten batches takes 1 % of their time
  constexpr std::int64_t kMaxEvaluations = 10;    // show the course of a run well enough
  return is_very_short() ? kMaxEvaluations : std::clamp<std::int64_t>(steps / kMinStepsBetween, 2, kMaxEvaluations);
}

// Why more steps than most_steps() would not help.
std::string Planner::enough_reason() const {
  if (text_.by_heart) return "after so many the text is known by heart";
  if (is_very_short()) return "after so many the model would only learn by heart what counting knows";
  return fmt::format("after {} over a text of this length the model would only learn it by heart",
                     passes_text(most_passes()));
}

double Planner::most_passes() const { return shape_.most_passes(text_.train_tokens, taught_); }

double Planner::most_steps() const {
  constexpr double kStepsByHeart = 300;  // of 2 x 64: they know ten lines or a poem
  // 100 steps, linear decay: texts of 3,000 to 35,000 characters have their lowest losses after 36 to 105.
  constexpr double kStepsOnVeryShortText = 100;
  if (text_.by_heart) return kStepsByHeart;
  if (is_very_short()) return kStepsOnVeryShortText;
  return std::round(std::clamp(most_passes() * steps_per_pass(), 1.0, kMaxCount));
}

void Planner::choose_length() {
  const double most = most_steps();
  const auto estimate = static_cast<std::int64_t>(std::clamp(training_steps(), 1.0, most));
  choose_intervals(estimate, evaluations(estimate));
  const VocabSizes vocab = random_vocab_sizes(plan_.config, text_.vocabulary);
  const double counting = counting_seconds(plan_.config, text_.tokens);
  choose_steps(
      expected_times(plan_.config, vocab, seconds_per_step_),
      eval_extent(plan_.config, std::llround(static_cast<double>(text_.tokens) / used()), text_.train_tokens / used()),
      static_cast<std::int64_t>(most), training_seconds() - counting, enough_reason());
  plan_.seconds += counting + teacher_seconds_;
  plan_.passes = static_cast<double>(plan_.config.max_steps) / steps_per_pass();
  plan_.train_tokens = std::llround(text_.train_tokens);
  plan_.memory_bytes = memory_bytes(plan_.config);
}

Plan make_plan(const PlanRequest& request, StepTimer& timer) {
  check(chooses_model(request.config),
        "plan: chooses models {} for the task next_token, without frozen parameters; got {} and {}",
        fmt::join(planned_models(), " and "), request.config.model, request.config.task);
  check(request.seconds > 0, "minutes: no time is left for training; got {:.3g} seconds; allow more", request.seconds);
  return Planner(request, timer).make();
}

}  // namespace maki
