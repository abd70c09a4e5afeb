// Plans of runs whose model make_plan() does not choose: choose_size() picks a size from the bytes of data,
// plan_length() the number of steps that fit into the time.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "data/io/number.h"
#include "train/loop/estimate.h"
#include "train/loop/evaluate.h"
#include "train/loop/plan/expected_time.h"
#include "train/loop/plan/planner.h"
#include "train/loop/trainer.h"

namespace maki {
namespace {

class LengthPlanner : Choices {
 public:
  explicit LengthPlanner(const PlanRequest& request) : Choices(request) {}

  // One layer of width 64 solves 400 pairs of sentences in 16 seconds; the presets are for megabytes.
  Plan choose_size(std::int64_t bytes) {
    constexpr std::int64_t kLittleBytes = 200'000, kMuchBytes = 2'000'000;  // between hundreds of lines and the presets
    const bool little = bytes < kLittleBytes, much = bytes >= kMuchBytes;
    choose({{"n_layer", little ? "1"
                        : much ? "4"
                               : "2"},
            {"n_embd", little ? "64" : "128"},
            {"batch_size", "32"}},
           fmt::format("for {} of data", format_bytes(bytes)));
    return std::move(plan_);
  }

  Plan plan_length(const Task& task, StepTimer& timer) {
    const Config& c = plan_.config;
    plan_.memory_bytes = memory_needed(c, task.vocab_sizes()).total();
    check(!request_.memory || plan_.memory_bytes <= *request_.memory,
          "plan: about {} of memory are needed, and {} may be used; lower batch_size, block_size, n_embd or n_layer",
          format_bytes(plan_.memory_bytes), format_bytes(request_.memory.value_or(0)));
    plan_.step = timer.time_step(c, task.vocab_sizes());
    choose_rate();
    const TaskRule& rule = task_rule(c);
    const auto most =
        static_cast<std::int64_t>(std::clamp(std::ceil(rule.most_passes / task.epochs(1)), 1.0, kMaxCount));
    // Evaluations, whose time is not known yet, are spaced by a first guess without them.
    const auto estimate =
        static_cast<std::int64_t>(std::clamp(request_.seconds / plan_.step.seconds, 1.0, static_cast<double>(most)));
    // Small data are learned in few steps. An evaluation takes at most a tenth of the time of those before it.
    constexpr std::int64_t kMinStepsBetween = 20, kMaxEvaluations = 10;
    choose_intervals(estimate, std::clamp<std::int64_t>(estimate / kMinStepsBetween, 2, kMaxEvaluations));
    const CheckpointState data = task.data_state();
    const double counting = rule.predicts_next ? counting_seconds(c, data.train_tokens + data.val_tokens) : 0;
    choose_steps(expected_times(c, task.vocab_sizes(), plan_.step.seconds), extent_of(task), most,
                 request_.seconds - counting,
                 fmt::format("after {} over the data the model would only memorize it", passes_text(rule.most_passes)));
    plan_.seconds += counting;
    plan_.passes = task.epochs(c.max_steps);
    return std::move(plan_);
  }

 private:
  void choose_rate() {
    choose({{"schedule", "linear"}, {"min_lr", "0"}}, "the learning rate falls to 0 at the end of the time");
    if (!request_.has_weights || request_.config.lora_rank > 0) return;
    choose({{"learning_rate", "0.0003"}}, "weights that have learned already need small steps");
  }

  EvalExtent extent_of(const Task& task) const {
    const EvalSample sample = eval_sample(plan_.config);
    const std::int64_t train = sampled_batch_count(sample.train, task.eval_batches(Part::train));
    const std::int64_t val = task.eval_batches(Part::val);
    return {train + sampled_batch_count(sample.val, val), train + val};
  }
};

}  // namespace

Plan choose_size(const PlanRequest& request, std::int64_t bytes) { return LengthPlanner(request).choose_size(bytes); }

Plan plan_length(const PlanRequest& request, const Task& task, StepTimer& timer) {
  check(request.seconds > 0, "minutes: no time is left for training; got {:.3g} seconds; allow more", request.seconds);
  return LengthPlanner(request).plan_length(task, timer);
}

}  // namespace maki
