#include "train/app/describe_run.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <utility>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/bf16.h"
#include "data/io/number.h"
#include "data/io/shell_quote.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/loop/language_model_task.h"

namespace maki {
namespace {

// The options that lower the largest part of the need.
std::string advice(const Config& config, const MemoryNeed& need) {
  const bool counting = need.counting > need.training();
  if (counting || 2 * need.counts > need.total())
    return fmt::format("omit the teacher {}{}", kCountingTeacher,
                       counting ? fmt::format(", or lower --threads (now {})", threads()) : "");
  if (2 * (need.activations + need.carried) > need.total()) {
    if (config.batch_size == 1) return fmt::format("lower --block-size (now {})", config.block_size);
    return fmt::format("lower --batch-size (now {}; a larger --grad-accum makes up for it) or --block-size (now {})",
                       config.batch_size, config.block_size);
  }
  return fmt::format("lower --n-embd (now {}) or --n-layer (now {}){}", config.n_embd, config.n_layer,
                     config.ngram_orders.empty() ? "" : fmt::format(", or --ngram-rows (now {})", config.ngram_rows));
}

}  // namespace

std::string describe(const MemoryNeed& need) {
  const std::pair<const char*, std::int64_t> parts[] = {{"weights", need.values + need.rounded_values},
                                                        {"gradients", need.gradients},
                                                        {"optimizer moments", need.moments},
                                                        {"buffers for other ranks", need.buffers},
                                                        {"activations", need.activations},
                                                        {"predictions of teachers", need.expected},
                                                        {"counts that teach", need.counts},
                                                        {"memory of the model", need.carried}};
  std::vector<std::string> texts;
  for (const auto& [name, bytes] : parts) {
    if (bytes > 0) texts.push_back(fmt::format("{} {}", name, format_bytes(bytes)));
  }
  const std::string while_saving =
      need.collected > 0 ? fmt::format("; rank 0, while it saves, {} of moments more", format_bytes(need.collected))
                         : "";
  return fmt::format("{}{}", fmt::join(texts, ", "), while_saving);
}

void add_memory_option(const Command& command, bool& force) {
  command.add_flag("--force", force, "begin even if the model seems to need more memory than is available");
}

void require_memory(const Config& config, const MemoryNeed& need, bool force) {
  const auto available = memory_of_rank();
  const std::int64_t most = need.total() + need.collected;
  if (!available || most <= *available) return;
  const std::string sentence =
      fmt::format("memory: about {} of memory are needed ({}), but only {} are available; {}", format_bytes(most),
                  describe(need), format_bytes(*available), advice(config, need));
  check(force, "{}, or try it with --force", sentence);
  to_stderr("warning: {}\n", sentence);
}

void announce_reading(const Config& config, bool planned) {
  constexpr std::uintmax_t kMaxQuickBytes = 1 << 20;  // are read in a fraction of a second
  const auto is_quick = [](const std::string& source) {
    std::error_code none;
    return source.starts_with("@") || std::filesystem::file_size(source, none) <= kMaxQuickBytes;
  };
  const auto is_missing = [](const std::string& source) {  // which is about to be said
    std::error_code none;
    return source != "-" && !source.starts_with("@") && !std::filesystem::exists(source, none);
  };
  if (std::ranges::any_of(config.corpus, is_missing)) return;
  if (planned || !std::ranges::all_of(config.corpus, is_quick))
    say(fmt::format("text   reading {}", fmt::join(config.corpus, " ")));
}

namespace {

// The step from which on the learning rate stays as it is. A warmup continues beyond the end of a schedule.
std::int64_t schedule_end(const Phase& phase) { return std::max(phase.end, phase.start + phase.warmup_steps); }

// What is unusual about the learning rate of the last steps.
void describe_schedule(const Config& config, bool resumed) {
  const Phase phase = last_phase(config);
  const std::int64_t steps = config.max_steps - phase.start;
  if (phase.warmup_steps > steps && steps > 0) {
    say(fmt::format(
        "warning: the warmup of {} does not end within {}: the learning rate stays below {}; lower --warmup-steps",
        pluralize(phase.warmup_steps, "step"), pluralize(steps, "step"), phase.learning_rate));
  }
  if (!schedule_ends(config) || config.max_steps <= schedule_end(phase)) return;
  say(fmt::format(
      "the schedule ends at step {}; after that the learning rate stays at {}{}", with_separators(schedule_end(phase)),
      phase.min_lr,
      resumed ? fmt::format("; --rewarm starts a new phase of it, up to step {}", with_separators(config.max_steps))
              : ""));
}

// How the steps of a run are divided among ranks.
void describe_ranks(const Config& config) {
  if (ranks().size() == 1) return;
  say(fmt::format("ranks  {}; a step has {} of {} (--grad-accum {} --batch-size {})", ranks().size(),
                  config.grad_accum == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", config.grad_accum),
                  pluralize(config.batch_size, "sequence"), config.grad_accum, config.batch_size));
  if (const std::int64_t idle = ranks().size() - config.grad_accum; idle > 0)
    say(fmt::format("note: {} no micro-batch and only updates parameters; raise --grad-accum in a new run",
                    idle == 1 ? "one rank has" : fmt::format("{} ranks have", idle)));
}

}  // namespace

std::unique_ptr<TrainableModel> describe_run(const Config& config, const Task& task, const std::string& run,
                                             bool resumed, bool force) {
  std::unique_ptr<TrainableModel> model = trainable_model(config, task);
  MemoryNeed need = memory_needed(config, *model, task.vocab_sizes(), ranks().size());
  if (const LanguageModelTask* const text = task.as_language_model())
    add_counts(config, static_cast<std::int64_t>(text->dataset().train.size()), need);
  say(fmt::format("text   {}", task.describe_data()));
  say(fmt::format(
      "model  {}, {}{}, width {}, context of {}: {}{}", pluralize(config.n_layer, "layer"),
      pluralize(config.n_head, "head"),
      config.n_kv_head > 0 ? fmt::format(" ({} of keys and values)", config.n_kv_head) : "", config.n_embd,
      pluralize(config.block_size, "token"), pluralize(need.parameters, "parameter"),
      need.trained < need.parameters
          ? fmt::format(", of which {} {} trained", with_separators(need.trained), need.trained == 1 ? "is" : "are")
          : ""));
  if (!config.teacher.empty())
    say(fmt::format("teach  a weight of {} for the predictions of {}", config.teacher_weight,
                    escape_unprintable(fmt::format("{}", fmt::join(config.teacher, " ")))));
  say(fmt::format("run    {} of {} on {} ({}), in {}: {:.2f} passes over the text", pluralize(config.max_steps, "step"),
                  task.describe_step(), pluralize(threads(), "thread"), config.target, run,
                  task.epochs(config.max_steps)));
  describe_ranks(config);
  say(fmt::format("memory about {}{}{}: {}",
                  need.counting > need.training()
                      ? fmt::format("{} while the text is counted, then ", format_bytes(need.counting))
                      : "",
                  format_bytes(need.training()), ranks().size() > 1 ? " per rank" : "", describe(need)));
  require_memory(config, need, force);
  if (config.precision == Precision::bfloat16 && kernels::bf16_unit() == kernels::Bf16Unit::floats) {
    say("note: this CPU has no fast instructions for bfloat16; --precision float32 takes no more time");
  }
  describe_schedule(config, resumed);
  return model;
}

// A schedule that has an end usually ends with the run, so continuing needs a new phase of it.
void describe_finished_run(const Config& config, const std::string& path, std::int64_t step) {
  keep_quiet(false);
  const std::string extended =
      fmt::format("maki train --resume {} --max-steps {}", shell_quote(path), 2 * std::max<std::int64_t>(step, 1));
  const std::string reached =
      step > config.max_steps
          ? fmt::format("has {} already, and max_steps is {}", pluralize(step, "step"), config.max_steps)
          : fmt::format("has reached step {} of {}", step, config.max_steps);
  const bool ended = schedule_ends(config) && step >= schedule_end(last_phase(config));
  say(fmt::format("{}: {}; continue it with: {}{}", path, reached, extended, ended ? " --rewarm" : ""));
  if (ended) {
    say(fmt::format("(--rewarm starts a new phase of the schedule; without it the learning rate stays at {})",
                    last_phase(config).min_lr));
  }
}

}  // namespace maki
