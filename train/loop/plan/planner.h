// How make_plan() chooses: one group of fields after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optim/make_optimizer.h"
#include "train/loop/plan/plan.h"
#include "train/loop/plan/shape_table.h"
#include "train/loop/plan/shapes.h"
#include "train/loop/time_limit.h"

namespace maki {

/// For a sentence: "1.5 s", "12 s".
std::string seconds_text(double seconds);

/// A plan in the making: fields that the request does not fix get values, each with a reason.
class Choices {
 protected:
  explicit Choices(const PlanRequest& request) : request_(request) { plan_.config = with_planned_schedule(request); }

  struct Value {
    const char* field;
    std::string text;
  };
  bool is_fixed(std::string_view field) const { return request_.is_fixed(field); }
  /// Sets those of the fields that the user has not fixed.
  void choose(const std::vector<Value>& values, const std::string& reason);
  void record(const std::vector<std::string>& fields, const std::string& reason);
  /// The learning rate for apply_recipe(): measured at widths of 64 and 128, whose products with the rate are equal.
  static double rate_for_width(std::int64_t n_embd);
  /// The reason for with_planned_schedule().
  void explain_schedule();
  /// Throws Error if the optimizer needs a learning rate that a plan does not know, and the user has given none.
  void require_known_rate(const OptimizerKind& optimizer) const;
  /// What the run needs if its training text has so many tokens. Training begins when the counts of a teacher are made,
  /// and a part of what that takes is kept.
  static std::int64_t memory_bytes(const Config& config, const VocabSizes& vocab, std::int64_t train_tokens);
  /// Adds what the teachers take: the time until they can teach, and from then on a part of each step. Throws Error if
  /// no time is left. Requires: seconds_per_step_ is that without teachers.
  void add_teachers(std::int64_t train_tokens, std::int64_t vocabulary);
  /// What is left for training once the teachers can teach.
  double training_seconds() const { return request_.seconds - teacher_seconds_; }
  /// How many steps fit into a time, or the user's max_steps if these are fewer.
  double steps_in(double seconds, double seconds_per_step) const;
  /// Evaluations, checkpoints and samples of a run of `steps` steps with `evaluations` evaluations.
  void choose_intervals(std::int64_t steps, std::int64_t evaluations);
  /// At most `most` steps, of which as many as fit into `seconds`; why no more would help is `enough`.
  void choose_steps(const WorkTimes& times, const EvalExtent& extent, std::int64_t most, double seconds,
                    const std::string& enough);

  const PlanRequest& request_;
  Plan plan_;
  double seconds_per_step_ = 0;
  double teacher_seconds_ = 0;  // until the teachers can teach, if there are any
};

/// Chooses a model and all that belongs to it.
class Planner : Choices {
 public:
  Planner(const PlanRequest& request, StepTimer& timer) : Choices(request), timer_(timer) {}

  Plan make() {
    suit_optimizer();
    choose_tokenizer();
    choose_model();
    choose_validation();
    choose_optimizer();
    choose_dropout();
    choose_length();
    return std::move(plan_);
  }

 private:
  double steps_per_pass() const;
  double training_steps() const { return steps_in(training_seconds(), seconds_per_step_); }
  double used() const { return used_share(request_.text, text_.tokens, plan_.config.block_size); }
  bool is_very_short() const { return shape_.recipe == Recipe::prior && text_.train_characters < kVeryShortText; }
  void suit_optimizer();
  void choose_tokenizer();
  bool can_have_prior(std::int64_t tokens) const;
  PriorUse prior_use() const;
  void choose_tables();
  double most_passes() const;
  void choose_batch();
  void choose_model();
  bool can_be_taught() const;
  void consider_teacher(const ShapeChoice& choice);
  std::int64_t memory_bytes(const Config& config) const;
  void explain_model(const Plan& before);
  void choose_head();
  void choose_validation();
  void choose_optimizer();
  void choose_dropout();
  std::int64_t evaluations(std::int64_t steps) const;
  std::string enough_reason() const;
  double most_steps() const;
  void choose_length();

  RememberedTimes timer_;
  ModelShape shape_ = {};
  LearnedText text_;
  bool taught_ = false;  // by counts, as the plan itself would choose it
};

}  // namespace maki
