#include <algorithm>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "data/mixing/held_out_expectations.h"
#include "train/loop/estimate.h"
#include "train/loop/plan/planner.h"

namespace maki {
namespace {

constexpr std::pair<const char*, const char*> kSchedule[] = {{"schedule", "linear"}, {"min_lr", "0"}};

bool plans_schedule(const PlanRequest& request) {
  return !request.is_fixed("schedule") || schedule_ends(request.config);
}

}  // namespace

std::string passes_text(double passes) {
  const std::string number = passes < 100 ? fmt::format("{:.2g}", passes) : fmt::format("{:.0f}", passes);
  return number + (number == "1" ? " pass" : " passes");
}

std::string seconds_text(double seconds) { return fmt::format("{:.{}f} s", seconds, seconds < 9.5 ? 1 : 0); }

double Choices::rate_for_width(std::int64_t n_embd) {
  constexpr double kWidthTimesRate = 0.512, kMaxRate = 8e-3;
  return std::min(kMaxRate, kWidthTimesRate / static_cast<double>(n_embd));
}

void Choices::choose(const std::vector<Value>& values, const std::string& reason) {
  std::vector<std::string> fields;
  for (const Value& value : values) {
    if (is_fixed(value.field)) continue;
    set_field(plan_.config, find_field(value.field), value.text);
    fields.emplace_back(value.field);
  }
  record(fields, reason);
}

void Choices::record(const std::vector<std::string>& fields, const std::string& reason) {
  if (!fields.empty()) plan_.choices.push_back({fields, reason});
}

Config with_planned_schedule(const PlanRequest& request) {
  Config config = request.config;
  if (!plans_schedule(request)) return config;
  for (const auto& [name, value] : kSchedule) {
    if (!request.is_fixed(name)) set_field(config, find_field(name), value);
  }
  return config;
}

void Choices::explain_schedule() {
  std::vector<std::string> fields;
  for (const auto& [name, value] : kSchedule) {
    if (plans_schedule(request_) && !is_fixed(name)) fields.emplace_back(name);
  }
  record(fields, "the learning rate falls to 0 at the end of the time");
}

void Choices::require_known_rate(const OptimizerKind& optimizer) const {
  check(optimizer.adaptive || is_fixed("learning_rate"), "plan: knows no learning rate for {}; add `learning_rate`",
        optimizer.name);
}

std::int64_t Choices::memory_bytes(const Config& config, const VocabSizes& vocab, std::int64_t train_tokens) {
  MemoryNeed need = memory_needed(config, vocab);
  add_counts(config, train_tokens, need);
  return need.total();
}

void Choices::add_teachers(std::int64_t train_tokens, std::int64_t vocabulary) {
  double parts = 0;
  for (const std::string& teacher : plan_.config.teacher) {
    parts += teacher == kCountingTeacher ? kCountsPart : kNetworkPart;
    if (teacher == kCountingTeacher)
      teacher_seconds_ += HeldOutExpectations::seconds_to_make(train_tokens, vocabulary, threads());
    if (const auto steps = own_teacher_steps(teacher))
      teacher_seconds_ += static_cast<double>(*steps) * seconds_per_step_;
  }
  check(training_seconds() > 0,
        "minutes: the teachers alone take about {}, and the run may take {}; allow more, or omit `teacher`",
        seconds_text(teacher_seconds_), seconds_text(request_.seconds));
  seconds_per_step_ *= 1 + parts;
}

double Choices::steps_in(double seconds, double seconds_per_step) const {
  const double fit = seconds / seconds_per_step;
  return is_fixed("max_steps") ? std::min(fit, static_cast<double>(request_.config.max_steps)) : fit;
}

// Evaluations, whose losses show whether the model is overfitting, and checkpoints, which limit what a power failure
// costs, may take some hundredths of the time: an evaluation as long as ten batches take, or where it comes often, a
// tenth of the steps since the last one (eval_sample()).
void Choices::choose_intervals(std::int64_t steps, std::int64_t evaluations) {
  // From so many steps between evaluations on, ten batches take less than a tenth of their time.
  constexpr std::int64_t kMinStepsForTenBatches = 100;
  constexpr std::int64_t kLogLines = 50;  // of a whole run, at least: enough for a curve
  const std::int64_t between = std::max<std::int64_t>(1, steps / evaluations);
  const std::string interval = fmt::format("{}", between);
  choose({{"eval_interval", interval},
          {"eval_batches", between < kMinStepsForTenBatches ? "-1" : "10"},
          {"checkpoint_interval", interval},
          {"sample_interval", fmt::format("{}", std::max<std::int64_t>(1, steps / 2))},
          {"log_interval", fmt::format("{}", std::max<std::int64_t>(1, steps / kLogLines))}},
         "evaluations and checkpoints take some hundredths of the time");
}

void Choices::choose_steps(const WorkTimes& times, const EvalExtent& extent, std::int64_t most, double seconds,
                           const std::string& enough) {
  check(!is_fixed("max_steps") || request_.config.max_steps > 0,
        "max_steps: a run that is planned has at least one step; got 0; omit `max_steps`");
  const bool asked = is_fixed("max_steps") && request_.config.max_steps <= most;
  plan_.most_steps = asked ? request_.config.max_steps : most;
  const EvalExtent affordable_extent = affordable(extent, times, request_.seconds);
  const std::int64_t steps = steps_that_fit(times, plan_.config, affordable_extent, 0, plan_.most_steps, seconds);
  plan_.config.max_steps = steps;
  plan_.config.lr_decay_steps = steps;
  if (steps == plan_.most_steps && !asked) plan_.enough = enough;
  std::vector<std::string> fields = {"max_steps", "lr_decay_steps"};
  if (is_fixed("max_steps")) fields.erase(fields.begin());
  record(fields,
         plan_.enough.empty() ? "as many as fit into the time; decided anew after a tenth of it" : plan_.enough);
  choose({{"warmup_steps", fmt::format("{}", std::clamp<std::int64_t>(steps / 20, 1, 100))}},
         "a twentieth of the steps");
  plan_.seconds = seconds_to_finish(times, plan_.config, affordable_extent, 0, steps);
}

}  // namespace maki
