// maki train CORPUS… [--out RUN] [options]      maki train --resume RUN [CORPUS…] [options]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <memory>
#include <new>
#include <optional>

#include "autograd/core/parallel.h"
#include "autograd/core/storage.h"
#include "autograd/kernels/simd/target.h"
#include "data/text/error.h"
#include "data/text/file.h"
#include "data/dataset/windows.h"
#include "train/run/checkpoint.h"
#include "train/run/error.h"
#include "train/loop/estimate.h"
#include "train/cli/flags.h"
#include "train/cli/initial_weights.h"
#include "train/loop/interrupt.h"
#include "train/loop/loaded_model.h"
#include "train/run/new_run.h"
#include "train/config/number.h"
#include "train/loop/progress.h"
#include "train/cli/resumed_config.h"
#include "train/loop/run_corpus.h"
#include "train/run/run_directory.h"
#include "train/run/run_lock.h"
#include "train/loop/session.h"
#include "train/run/set_aside.h"
#include "train/cli/verbs.h"

namespace maki {
namespace {

struct TrainOptions {
  explicit TrainOptions(CLI::App& command) : flags(command) {}
  ConfigFlags flags;
  std::vector<std::string> corpus;
  std::string resume, checkpoint, init_from, epochs;
  bool rewarm = false;
};

void say(const std::string& line) { to_stderr("{}\n", line); }

void use_threads(Config& config) {
  if (config.threads > 0) set_threads(config.threads);
  config.target = kernels::target();
}

// Printed before the memory is allocated.
void say_need(const Config& config, const MemoryNeed& need) {
  say(fmt::format("memory about {}: weights {}, gradients {}, optimizer moments {}, activations {}",
                  bytes_text(need.total()), bytes_text(need.values), bytes_text(need.gradients),
                  bytes_text(need.moments), bytes_text(need.activations)));
  const auto available = available_memory();
  if (!available || need.total() <= *available) return;
  say(fmt::format(
      "warning: the run needs about {} of memory, and {} are available; use a smaller --batch-size (now {}, "
      "with a larger --grad-accum), --block-size or --n-embd",
      bytes_text(need.total()), bytes_text(*available), config.batch_size));
}

void say_start(const Config& config, const Dataset& data, const std::string& run, bool resumed) {
  const MemoryNeed need = memory_needed(config, data.tokenizer->vocab_size());
  const std::int64_t tokens = config.batch_size * config.grad_accum * config.block_size;
  say(fmt::format("text   {}; vocabulary of {}; {} for training, {} for validation",
                  counted(data.characters, "character"), grouped(data.tokenizer->vocab_size()),
                  counted(static_cast<std::int64_t>(data.train.size()), "token"),
                  grouped(static_cast<std::int64_t>(data.val.size()))));
  say(fmt::format("model  {}, {}, width {}, context of {}: {}", counted(config.n_layer, "layer"),
                  counted(config.n_head, "head"), config.n_embd, counted(config.block_size, "token"),
                  counted(need.parameters, "parameter")));
  say(fmt::format(
      "run    {} of {} on {} ({}), in {}: {:.2f} passes over the text", counted(config.max_steps, "step"),
      counted(tokens, "token"), counted(threads(), "thread"), config.target, run,
      static_cast<double>(config.max_steps) * static_cast<double>(tokens) / static_cast<double>(data.train.size())));
  say_need(config, need);
  if (config.warmup_steps > config.max_steps && config.max_steps > 0) {
    say(fmt::format(
        "warning: the warmup of {} does not end within {}: the learning rate stays below {}; use fewer --warmup-steps",
        counted(config.warmup_steps, "step"), counted(config.max_steps, "step"), config.learning_rate));
  }
  if (schedule_ends(config) && config.max_steps > last_phase(config).end) {
    const Phase phase = last_phase(config);
    say(fmt::format(
        "the schedule ends at step {}; after that the learning rate stays at {}{}", grouped(phase.end), phase.min_lr,
        resumed ? fmt::format("; --rewarm starts a new phase of it, up to step {}", grouped(config.max_steps)) : ""));
  }
}

// The length of a run is given in optimizer steps. The error for --epochs says how many steps the passes would be.
void check_epochs(const std::string& epochs, const Config& c, std::int64_t train_tokens) {
  if (epochs.empty()) return;
  const double passes = decimal_number("epochs", epochs, 0, kMostCount);
  const Windows windows(train_tokens, c.block_size, static_cast<std::uint64_t>(c.seed));
  const auto per_step = static_cast<double>(c.batch_size * c.grad_accum);
  const auto steps = static_cast<std::int64_t>(std::ceil(passes * static_cast<double>(windows.per_epoch()) / per_step));
  fail(
      "epochs: is not an option, because the length of a run is given in optimizer steps; {} over {} with {} per step "
      "{} {}: give --max-steps {}",
      passes == 1 ? "one pass" : epochs + " passes", counted(train_tokens, "training token"),
      counted(c.batch_size * c.grad_accum * c.block_size, "token"), passes == 1 ? "is" : "are", counted(steps, "step"),
      steps);
}

int start(const TrainOptions& options) {
  check(options.checkpoint.empty() && !options.rewarm,
        "{}: changes how a run is continued and needs --resume RUN; give --resume, or leave the option out",
        options.rewarm ? "rewarm" : "checkpoint");
  std::optional<InitialWeights> weights;
  Config config;
  if (options.init_from.empty()) {
    options.flags.apply(config, "quickstart");
  } else {
    config = weights.emplace(options.init_from).configure(options.flags);
  }
  if (!options.corpus.empty()) config.corpus = options.corpus;
  check(!config.corpus.empty(), "train: needs a CORPUS: a file, a directory, - or @stories");
  check((config.include.empty() && config.exclude.empty()) || std::ranges::any_of(config.corpus, is_directory),
        "include and exclude: choose among the files of a directory; give a directory, or leave them out");
  if (config.out.empty()) config.out = default_run_path(config.corpus.front());
  resolve(config);
  validate(config);
  use_threads(config);
  const RunDirectory run(config.out);
  require_free(run);  // before time is spent on reading a large text

  // The text itself is freed once it is encoded.
  const Dataset data = make_dataset(read_corpus(config.corpus, corpus_options(config)), config.val_fraction,
                                    config.block_size, config.tokenizer, weights ? weights->tokenizer() : nullptr);
  config.corpus = absolute_sources(config.corpus);
  check_epochs(options.epochs, config, static_cast<std::int64_t>(data.train.size()));
  say_start(config, data, config.out, /*resumed=*/false);
  Trainer trainer(config, data, /*initial_values=*/!weights);
  const std::string hash = weights ? weights->load(trainer.store()) : "";
  check(config.init_from.empty() || config.init_from == hash,
        "init_from: the configuration starts with weights of hash {}; give the run that has them with --init-from RUN",
        config.init_from);
  config.init_from = hash;
  const std::string echo = to_toml(config);
  const DeferInterrupts deferred;
  NewRun claimed(run, echo);
  commit_file(posix(), run.config_file(), {as_bytes(echo)});
  try {
    return Session(config, data, trainer, run).train();
  } catch (const std::bad_alloc&) {
    if (trainer.steps() == 0) claimed.take_back();
    throw;
  } catch (const OutOfMemory& error) {
    if (trainer.steps() > 0) throw;
    claimed.take_back();
    fail("{} (--batch-size, --block-size, --n-embd); {} was removed again", error.what(), config.out);
  }
}

// The step of the checkpoint to resume from: `choice`, or else the newest that can be resumed.
std::int64_t resumed_step(const RunDirectory& run, const std::string& choice) {
  std::vector<std::string> notes;
  std::int64_t step = 0;
  if (choice.empty()) {
    step = run.newest_verified([&](const std::string& path) { verify_checkpoint(run, path); }, notes);
  } else {
    const std::string path = choose_checkpoint(run.path(), choice, notes);
    step = check_resumable(path).step;
    verify_checkpoint(run, path);
  }
  for (const std::string& note : notes) say(note);
  return step;
}

// For a finished run. Its schedule has ended, too, unless it has no horizon.
void say_reached(const Config& config, const std::string& path, std::int64_t step) {
  const std::string extended =
      fmt::format("maki train --resume {} --max-steps {}", shell_word(path), 2 * std::max<std::int64_t>(step, 1));
  say(fmt::format("{}: has reached step {} of {}; continue it with: {}{}", path, step, config.max_steps, extended,
                  schedule_ends(config) ? " --rewarm" : ""));
  if (schedule_ends(config) && step >= last_phase(config).end) {
    say(fmt::format("(--rewarm starts a new phase of the schedule; without it the learning rate stays at {})",
                    last_phase(config).min_lr));
  }
}

int resume(const TrainOptions& options) {
  check(options.init_from.empty(),
        "init_from: starts a new run and cannot be combined with --resume; give only one of them");
  const RunDirectory run(options.resume);
  check(run.exists(), "{}: contains no run to resume", options.resume);
  const RunLock lock(run);
  for (const std::string& note : run.remove_temporary_files()) say(note);
  const std::int64_t step = resumed_step(run, options.checkpoint);
  const ContainerReader file(run.checkpoint_file(step));
  const CheckpointState state = read_state(file);
  check_epochs(options.epochs, state.config, state.train_tokens);

  std::string ran_on;
  Config config = resumed_config({options.flags, options.resume, options.rewarm}, run, state, ran_on);
  validate(config);
  use_threads(config);
  if (!ran_on.empty() && ran_on != config.target) {
    say(fmt::format("this run started on {} and continues on {}: its results stay correct but differ in the last bits",
                    ran_on, config.target));
  }
  check(options.checkpoint.empty() || step < config.max_steps,
        "checkpoint: its step {} must be below max_steps {}; raise --max-steps to continue from it", step,
        config.max_steps);
  // A run that was ended between its last save and its last evaluation still has to do that evaluation.
  const bool measured = step != config.max_steps || Metrics(run.metrics_file(), step).evaluated(step);
  if (step >= config.max_steps && measured) {
    say_reached(config, options.resume, step);
    return 0;
  }

  config.corpus = sources_again(options.resume, absolute_sources(options.corpus), config.corpus);
  const std::string echo = to_toml(config);  // throws if it cannot be stored, before any file is moved
  const Dataset data = make_dataset(read_corpus_again(config, state.corpus_hash), config.val_fraction,
                                    config.block_size, config.tokenizer, load_tokenizer(state.tokenizer));
  const auto train_tokens = static_cast<std::int64_t>(data.train.size());
  const auto val_tokens = static_cast<std::int64_t>(data.val.size());
  const bool same_counts =
      data.characters == state.characters && train_tokens == state.train_tokens && val_tokens == state.val_tokens;
  check<CheckpointError>(same_counts,
                         "{}: says that its text has {} characters, {} training tokens and {} validation tokens, but "
                         "it has {}, {} and {}; checkpoint and text do not match",
                         file.path(), state.characters, state.train_tokens, state.val_tokens, data.characters,
                         train_tokens, val_tokens);
  say_start(config, data, options.resume, /*resumed=*/true);
  Trainer trainer(config, data, /*initial_values=*/false);
  load_values(file, trainer.store());
  load_optimizer(file, step, trainer.optimizer());
  trainer.set_steps(step);
  const DeferInterrupts deferred;
  const std::string folder = options.checkpoint.empty() ? "" : set_aside_after(run, step);
  if (!folder.empty())
    say(fmt::format("moved the checkpoints after step {} to {}, with a copy of metrics.jsonl", step, folder));
  commit_file(posix(), run.config_file(), {as_bytes(echo)});
  say(fmt::format("resuming after step {}", step));
  return Session(config, data, trainer, run).train();
}

}  // namespace

void add_train(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand("train", "Train a model on a text, or resume a run");
  const auto options = std::make_shared<TrainOptions>(*command);
  command->add_option("CORPUS", options->corpus, "files, directories, - for standard input, @stories or @stories-ja");
  command->add_option("--resume", options->resume, "resume the run in this directory")->type_name("RUN")->take_last();
  command->add_option("--checkpoint", options->checkpoint, "with --resume: go back to this checkpoint (best or a step)")
      ->type_name("WHICH")
      ->take_last();
  command->add_flag("--rewarm", options->rewarm,
                    "with --resume: start a new phase of the learning-rate schedule, which ends at --max-steps; "
                    "--learning-rate, --min-lr and --warmup-steps describe it");
  command->add_option("--init-from", options->init_from, "start a new run with the weights of this run or checkpoint")
      ->type_name("RUN")
      ->take_last();
  command->add_option("--epochs", options->epochs)->take_last()->group("");  // hidden: gets an error that helps
  command->callback([options, &chosen] {
    chosen = [options] { return options->resume.empty() ? start(*options) : resume(*options); };
  });
}

}  // namespace maki
