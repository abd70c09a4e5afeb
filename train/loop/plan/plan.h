// A plan: which values the fields of a configuration should have to learn as much as possible from a text in a given
// time. It is a function of the text, the time and measured step times, and writes nothing but ordinary fields, so that
// a run that was planned can be repeated from its configuration.
//
// Thread safety: functions may be called on several threads at once, each with a timer of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/loop/plan/data_facts.h"
#include "train/loop/plan/step_timer.h"
#include "train/loop/plan/text_facts.h"
#include "train/loop/task.h"
#include "train/run/config/config.h"

namespace maki {

struct PlanRequest {
  TextFacts text;
  double seconds = 0;  ///< from now to the end of the run
  Config config;       ///< the values of the fields that are fixed, and defaults of the others
  /// Whether the user has given this field a value, which the plan then keeps.
  std::function<bool(std::string_view field)> is_fixed = [](std::string_view) { return false; };
  bool has_weights = false;                                 ///< the run begins with the weights of another
  std::optional<std::int64_t> memory = std::nullopt;        ///< bytes that the run may need; nullopt: any number
  std::optional<std::int64_t> most_context = std::nullopt;  ///< tokens that its teachers see; nullopt: any number

  /// Whether the user has asked for n-gram tables.
  bool wants_tables() const {
    if (is_fixed("ngram_orders")) return !config.ngram_orders.empty();
    return is_fixed("ngram_rows") || is_fixed("ngram_dropout") || is_fixed("ngram_lr_factor");
  }
};

/// Fields that were chosen together, and why.
struct PlanChoice {
  std::vector<std::string> fields;
  std::string reason;
};

/// A shape that was timed, without its n-gram tables.
struct MeasuredShape {
  std::int64_t n_layer, n_embd, block_size, batch_size;
  StepTime step;
};

struct Plan {
  Config config;
  std::vector<PlanChoice> choices;
  std::vector<MeasuredShape> measured;
  double seconds = 0;  ///< expected, from now to the end of the run
  double passes = 0;   ///< over the training text
  std::int64_t memory_bytes = 0, vocabulary = 0;
  std::int64_t train_tokens = 0;  ///< of the text, about
  std::int64_t most_steps = 0;    ///< more would not help, however fast the machine turns out to be
  std::string enough;             ///< why not, if the run has most_steps steps
  StepTime step;
  std::int64_t usual_length = 0;  ///< tokens of the sequences of `step`: block_size, or less where lines are shorter
  double expected_loss = 0;       ///< as a part of what counting alone reaches; it means nothing if by_heart
  bool by_heart = false;          ///< the text is to be known, and nothing of it is held back for validation
};

/// Whether make_plan() can choose a model: for gpt and linear with the task next_token, and if no parameters are
/// frozen.
bool chooses_model(const Config& config);
/// Measures a few shapes, in about kMeasuringShare of the time, and chooses. Throws Error unless chooses_model(), if no
/// time is left, if there is too little memory for the smallest shape, and whatever the timer throws.
Plan make_plan(const PlanRequest& request, StepTimer& timer);

/// The configuration of a request with the schedule of every plan, whose rate falls to 0 at its end, unless the user
/// has fixed a schedule that does not end: what the other fields are checked with, before there is a plan.
Config with_planned_schedule(const PlanRequest& request);

/// For other models and tasks: the fields of model, optimizer and tokens that suit the data. The first half of a plan,
/// of which plan_length() is the second, and gives the reason for the schedule; of the request, text and time are not
/// used.
Plan choose_size(const PlanRequest& request, const DataFacts& data);
/// For a run whose model is decided, such as one that begins with the weights of another: how many
/// steps fit into the time, no more than TaskRule::most_passes over the data, and what depends on it. Of the request,
/// text is not used. Throws Error if no time is left, and whatever the timer throws.
Plan plan_length(const PlanRequest& request, const Task& task, StepTimer& timer);

/// A number of passes for display: "1 pass", "1.3 passes".
std::string passes_text(double passes);

/// The part of the time that measuring step times may take. The smallest shape is always measured, even if that takes
/// longer; another one only if it is expected to take no more than what is left.
inline constexpr double kMeasuringShare = 0.05;

}  // namespace maki
