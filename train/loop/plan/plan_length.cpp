// Plans of runs whose model make_plan() does not choose: choose_size() picks model and tokens for the data,
// plan_length() the number of steps that fit into the time.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "data/io/number.h"
#include "optim/make_optimizer.h"
#include "train/loop/estimate.h"
#include "train/loop/evaluate.h"
#include "train/loop/plan/expected_time.h"
#include "train/loop/plan/planner.h"
#include "train/loop/trainer.h"

namespace maki {
namespace {

class LengthPlanner : Choices {
 public:
  explicit LengthPlanner(const PlanRequest& request) : Choices(request) {
    require_known_rate(optimizer_kind(request.config.optimizer));
  }

  Plan choose_size(const DataFacts& data) {
    choose_blocks(data.bytes);
    choose_context(data);
    if (data.lines > 0) choose_lines(data);
    return std::move(plan_);
  }

  Plan plan_length(const Task& task, StepTimer& timer) {
    const Config& c = plan_.config;
    const CheckpointState data = task.data_state();
    plan_.vocabulary = task.vocab_sizes().target - task_rule(c).special_ids;
    plan_.train_tokens = data.train_tokens;
    plan_.memory_bytes = memory_bytes(c, task.vocab_sizes(), data.train_tokens);
    check(!request_.memory || plan_.memory_bytes <= *request_.memory,
          "plan: about {} of memory are needed, and {} may be used; {}", format_bytes(plan_.memory_bytes),
          format_bytes(request_.memory.value_or(0)), advice_on_memory());
    Config timed = c;
    timed.block_size = plan_.usual_length = usual_length(task);
    plan_.step = timer.time_step(timed, task.vocab_sizes());
    seconds_per_step_ = plan_.step.seconds;
    add_teachers(data.train_tokens, plan_.vocabulary);
    choose_rate();
    const TaskRule& rule = task_rule(c);
    const std::int64_t most = most_steps(task);
    // Evaluations, whose time is not known yet, are spaced by a first guess without them.
    const auto estimate = static_cast<std::int64_t>(
        std::clamp(steps_in(training_seconds(), seconds_per_step_), 1.0, static_cast<double>(most)));
    // Small data are learned in few steps. An evaluation takes at most a tenth of the time of those before it.
    constexpr std::int64_t kMinStepsBetween = 20, kMaxEvaluations = 10;
    choose_intervals(estimate, std::clamp<std::int64_t>(estimate / kMinStepsBetween, 2, kMaxEvaluations));
    const double counting = rule.predicts_next ? counting_seconds(c, data.train_tokens + data.val_tokens) : 0;
    choose_steps(
        expected_times(c, task.vocab_sizes(), seconds_per_step_), extent_of(task), most, training_seconds() - counting,
        fmt::format("after {} over the data the model would only memorize it", passes_text(task.epochs(most))));
    plan_.seconds += counting + teacher_seconds_;
    plan_.passes = task.epochs(c.max_steps);
    return std::move(plan_);
  }

 private:
  static constexpr std::int64_t kMuchBytes = 2'000'000;  // as much as the presets are for

  // Of little data, the passes that are too many take too few steps to learn anything: a text of 281 characters has a
  // validation loss of 2.9 after 5 steps of transformer-xl and of 2.6 after 60, and a classifier of 20 texts is right
  // for 94 % of 200 others after 30 steps, for 95.5 % after 60 (two seeds).
  std::int64_t most_steps(const Task& task) const {
    constexpr double kFewestSteps = 60;
    const double most = std::ceil(task_rule(plan_.config).most_passes / task.epochs(1));
    return static_cast<std::int64_t>(std::clamp(most, kFewestSteps, kMaxCount));
  }

  // A line that does not fit into the context is refused.
  std::string advice_on_memory() const {
    const Config& c = plan_.config;
    if (task_rule(c).plain_text()) return "lower batch_size, block_size, n_embd or n_layer";
    return fmt::format("lower batch_size, n_embd or n_layer, or divide the longest lines, which need a context of {}",
                       pluralize(c.block_size, "token"));
  }

  // One layer of width 64 solves 400 pairs of sentences in 16 seconds.
  void choose_blocks(std::int64_t bytes) {
    constexpr std::int64_t kLittleBytes = 200'000;
    const bool little = bytes < kLittleBytes, much = bytes >= kMuchBytes;
    const TaskRule& rule = task_rule(plan_.config);
    const bool wide = rule.fills_masks && !little;
    choose({{"n_layer", little ? "1"
                        : much ? "4"
                               : "2"},
            {"n_embd", little ? "64" : "128"},
            {"batch_size", wide                          ? "16"
                           : rule.reads_source() && much ? many_pairs_per_step()
                                                         : "32"}},
           fmt::format("for {} of data", format_bytes(bytes)));
    if (wide) choose({{"block_size", "128"}}, "tokens at the ends of a sequence have neighbours on one side only");
    const std::int64_t heads = plan_.config.n_head;
    fit_heads(plan_.config, request_);
    if (plan_.config.n_head != heads) record({"n_head"}, "heads divide the width");
    record(apply_recipe(plan_.config, request_), "a network of these parts learns more from each token");
    const Config& c = plan_.config;
    if (optimizer_kind(c.optimizer).matrix_rate)
      choose({{"learning_rate", fmt::format("{}", rate_for_width(c.n_embd))}},
             fmt::format("for a width of {}", c.n_embd));
  }

  void choose_context(const DataFacts& data) {
    const std::int64_t wanted = plan_.config.block_size;
    const std::int64_t of_text = data.fewest_tokens ? longest_window(*data.fewest_tokens) : wanted;
    const std::int64_t of_teacher = request_.most_context.value_or(wanted), most = std::min(of_text, of_teacher);
    if (most >= wanted) return;
    choose({{"block_size", fmt::format("{}", most)}},
           most == of_teacher ? "the context of a teacher" : "both parts of the text have windows of this length");
  }

  // Larger steps take less time for each pair. After 415,000 of the pairs in docs/guide.md translations have a BLEU-4
  // of 38.8 with 32 in a step, 39.7 with 64 and 40.6 with 128; after a minute with AVX2 16.5, 19.1 and 17.5.
  const char* many_pairs_per_step() const {
    constexpr double kLongTime = 300;
    return request_.seconds < kLongTime ? "64" : "128";
  }

  // Of data in columns.
  void choose_lines(const DataFacts& data) {
    constexpr std::int64_t kEnoughLines = 1000;  // for validation
    constexpr std::int64_t kMultiple = 8;        // of a number that people read
    const Config& c = plan_.config;
    if (data.tokenizer != c.tokenizer)
      choose({{"tokenizer", data.tokenizer}}, "almost every word of the last tenth occurs before it");
    const std::int64_t block = ceil_div(data.most_tokens(c.tokenizer), kMultiple) * kMultiple;
    if (block > c.block_size) choose({{"block_size", fmt::format("{}", block)}}, "no line has more tokens");
    const double enough = static_cast<double>(kEnoughLines) / static_cast<double>(data.lines);
    if (enough < c.val_fraction) {
      choose({{"val_fraction", fmt::format("{:.1g}", enough)}},
             fmt::format("so many of {} lines say how well the others are learned", with_separators(data.lines)));
    }
    if (!task_rule(c).reads_source()) return;
    choose({{"label_smoothing", "0.1"}}, "a line often has several good translations");
    if (is_read_often(data.bytes)) choose({{"dropout", "0.1"}}, "there is time to read the data many times");
  }

  // Without dropout, pairs that are read often are learned by heart (docs/learning.md), as few pairs are meant to be.
  bool is_read_often(std::int64_t bytes) const {
    constexpr double kManyPasses = 12, kBytesPerSecond = 64'000;  // of pairs, on two cores with AVX2
    return bytes >= kMuchBytes && request_.seconds * kBytesPerSecond >= kManyPasses * static_cast<double>(bytes);
  }

  // The tokens of a sequence: block_size in a text, and in data of lines the mean of the lines, of both sides if they
  // are pairs, because those of a timed step are as long.
  std::int64_t usual_length(const Task& task) const {
    constexpr std::int64_t kMostSteps = 1000;  // enough for a mean
    const Config& c = plan_.config;
    if (task_rule(c).plain_text()) return c.block_size;
    if (task_rule(c).reads_source()) {
      const double pairs = static_cast<double>(c.batch_size * c.grad_accum) / task.epochs(1);
      const double mean = static_cast<double>(task.data_state().train_tokens) / (2 * pairs);
      return std::clamp<std::int64_t>(std::llround(mean) + 1, 2, c.block_size);  // with the end of a target
    }
    const auto steps = static_cast<std::int64_t>(std::clamp(1 / task.epochs(1), 1.0, static_cast<double>(kMostSteps)));
    const std::int64_t lines = steps * c.batch_size * c.grad_accum;
    return std::clamp<std::int64_t>(ceil_div(task.tokens_before(steps), lines), 2, c.block_size);
  }

  void choose_rate() {
    explain_schedule();
    if (!request_.has_weights || request_.config.lora_rank > 0) return;
    std::vector<Value> rates = {{"learning_rate", "0.0003"}};
    if (optimizer_kind(plan_.config.optimizer).matrix_rate) rates.push_back({"muon_lr", "0.006"});
    choose(rates, "weights that have learned already need small steps");
  }

  EvalExtent extent_of(const Task& task) const {
    const EvalSample sample = eval_sample(plan_.config);
    const std::int64_t train = sampled_batch_count(sample.train, task.eval_batches(Part::train));
    const std::int64_t val = task.eval_batches(Part::val);
    return {train + sampled_batch_count(sample.val, val), train + val};
  }
};

}  // namespace

Plan choose_size(const PlanRequest& request, const DataFacts& data) { return LengthPlanner(request).choose_size(data); }

Plan plan_length(const PlanRequest& request, const Task& task, StepTimer& timer) {
  check(request.seconds > 0, "minutes: no time is left for training; got {:.3g} seconds; allow more", request.seconds);
  return LengthPlanner(request).plan_length(task, timer);
}

}  // namespace maki
