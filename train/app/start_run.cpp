// maki train CORPUS…: a new run.
#include <algorithm>
#include <cmath>
#include <new>
#include <optional>

#include "autograd/core/storage.h"
#include "data/dataset/dataset.h"
#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/printable.h"
#include "train/app/arithmetic.h"
#include "train/app/begun_run.h"
#include "train/app/describe_run.h"
#include "train/app/epochs.h"
#include "train/app/event_file.h"
#include "train/app/initial_weights.h"
#include "train/app/interrupt.h"
#include "train/app/own_teachers.h"
#include "train/app/planned_start.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/app/run_session.h"
#include "train/app/shared_run.h"
#include "train/app/train_options.h"
#include "train/loop/tasks.h"
#include "train/run/config/configured_tokenizer.h"
#include "train/run/config/trained_parameters.h"
#include "train/run/loaded_model.h"
#include "train/run/new_run.h"

namespace maki {
namespace {

// The values that options, file and preset give to the new run, and defaults.
Config given_config(const TrainOptions& options, std::optional<InitialWeights>& weights) {
  Config config;
  if (options.init_from.empty()) {
    options.flags.apply(config, "quickstart");
  } else {
    config = weights.emplace(options.init_from).make_config(options.flags, options.corpus);
  }
  if (!options.corpus.empty()) config.corpus = options.corpus;
  config.teacher = teacher_checkpoints(config.teacher);
  check(config.lora_rank == 0 || weights,
        "lora_rank: adapts a model that has learned already; name its run with --init-from RUN, or omit the option");
  check(!config.corpus.empty(), "train: needs a CORPUS: a file, a directory, - or @stories");
  check((config.include.empty() && config.exclude.empty()) ||
            std::ranges::any_of(config.corpus, [](const std::string& path) { return is_directory(path); }),
        "include and exclude: apply only to the files of a directory; name a directory, or omit them");
  return config;
}

// The tokenizer of --tokenizer-file or of a corpus that was prepared, which the configuration then describes; else
// that of the teachers, or null.
std::shared_ptr<const Tokenizer> given_tokenizer(const TrainOptions& options,
                                                 const std::optional<InitialWeights>& weights,
                                                 std::optional<Corpus>& prepared, Config& config) {
  if (options.tokenizer_file.empty()) {
    if (!prepared) return weights ? nullptr : tokenizer_of_teacher(options.flags, config);
    return adopt_prepared(*prepared, options.flags, weights ? weights->tokenizers().target : nullptr, config);
  }
  check(options.init_from.empty(),
        "tokenizer_file: the weights of --init-from belong to their own tokenizer; use only one of the two options");
  const auto option = tokenizer_option(options.flags);
  check(!option, "tokenizer_file: describes the whole tokenizer; omit {}", option.value_or(""));
  std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(options.tokenizer_file);
  if (prepared) return adopt_prepared(*prepared, options.flags, std::move(tokenizer), config);
  describe_tokenizer(*tokenizer, config);
  return tokenizer;
}

// The tokenizers that the run has before its text is read; null: those that it makes.
PairTokenizers known_tokenizers(const TrainOptions& options, const std::optional<InitialWeights>& weights,
                                const std::shared_ptr<const Tokenizer>& tokenizer, bool prepared) {
  PairTokenizers known = weights ? weights->tokenizers() : PairTokenizers{tokenizer, tokenizer};
  if (!options.special) return known;
  check(!prepared, "special: applies to a text, and the corpus was prepared; prepare it with --special");
  check(known.target != nullptr,
        "special: needs a tokenizer that has special tokens already; name it with --tokenizer-file or --init-from, or "
        "divide documents with --document-separator");
  return finding_specials(known);
}

// The time that the run may take, in minutes, if it is planned: --minutes, or the usual time if nothing was said about
// the length of the run.
std::optional<double> planned_minutes(const TrainOptions& options, std::optional<double> given) {
  if (!given && leaves_steps_open(options.flags) && options.epochs.empty()) given = kUsualMinutes;
  check(given || !options.explain, "explain: applies to a run that is planned; omit it, or the number of steps");
  return given;
}

// Sets the number of steps, and with it the end of the schedule if that is the end of the run.
void set_epochs(const std::string& epochs, const Task& task, bool ends_with_run, Config& config) {
  config.max_steps = steps_of_epochs(epochs, task);
  if (ends_with_run) config.lr_decay_steps = 0;
  fill_dependent_defaults(config);
}

// The task with teachers, unless the run has to train some itself once it has begun.
std::unique_ptr<Task> with_known_teachers(Config& config, std::unique_ptr<Task> task, bool has_weights) {
  const bool own = has_own_teachers(config);
  if (own) require_own_teachers(config, has_weights);
  if (own || config.teacher.empty()) config.taught_by.clear();
  return own ? std::move(task) : with_teachers(config, std::move(task), RunDirectory(config.out));
}

// Loads the initial weights of another run, if there are any, and records their hash. Adapters only exist beside them.
void load_initial_weights(const std::optional<InitialWeights>& weights, Trainer& trainer, Config& config) {
  require_freeze_has_effect(config, trainer.store());
  const std::string hash = weights ? weights->load(trainer.store(), trainer.task()) : "";
  check(config.init_from.empty() || config.init_from == hash,
        "init_from: the configuration requires initial weights with hash {}; name their run with --init-from RUN",
        config.init_from);
  config.init_from = hash;
  check<DivergedError>(!weights || std::isfinite(trainer.next_loss()),
                       "init_from: the weights have a loss on this text that is not finite, although they are finite "
                       "themselves; choose another checkpoint");
}

// Claims the directory of the run. If it is the default one, another start may have taken it meanwhile: then the next.
RunClaim claim_directory(Config& config, bool is_default, const std::string& first_corpus) {
  for (;;) {
    try {
      return RunClaim(RunDirectory(config.out), to_toml(config));
    } catch (const OccupiedOutput&) {
      if (!is_default) throw;
    }
    config.out = default_run_path(first_corpus);
    to_stderr("another run has taken that directory; this one is {}\n", escape_unprintable(config.out));
  }
}

// Saves the beginning of the run, from which it can be resumed, trains its teachers, and then the run. The task, which
// gets teachers, must outlive the trainer.
int train_with_own_teachers(Config& config, std::unique_ptr<Task>& task, std::optional<Trainer>& trainer,
                            SessionOptions with, std::optional<PlannedRun> plan) {
  const RunDirectory run(config.out);
  save_beginning(config, *trainer, run, std::exchange(with.remarks, {}));
  trainer.reset();  // ranks follow one at a time
  if (const auto exit_code = train_own_teachers(config, *task, run)) return *exit_code;
  task = with_teachers(config, std::move(task), run);
  write_config(run, config);
  share_training(config);
  trainer.emplace(config, *task, trainable_model(config, *task), /*initial_values=*/false, ranks());
  const VerifiedCheckpoint beginning(run, run.checkpoint_file(0));
  trainer->restore(beginning);
  with.resumed = &beginning;
  return run_session(config, *trainer, run, std::move(with), plan);
}

void take_back(RunClaim& claimed, const Config& config) {
  remove_event_files(config.out);  // the directory was unoccupied, so they are those of this run
  claimed.roll_back();
}

// Trains; takes the files of the run back if there is no memory for its first step.
int train_if_memory(const Config& config, Trainer& trainer, RunClaim& claimed, SessionOptions with,
                    std::optional<PlannedRun> plan) {
  try {
    return run_session(config, trainer, RunDirectory(config.out), std::move(with), plan);
  } catch (const std::bad_alloc&) {
    if (trainer.steps() == 0) take_back(claimed, config);
    throw;
  } catch (const OutOfMemoryError& error) {
    if (trainer.steps() > 0) throw;
    take_back(claimed, config);
    fail("{}; lower --batch-size, --block-size or --n-embd; {} was removed again", error.what(), config.out);
  }
}

// Records the configuration and trains. Takes the files of the run back if its first checkpoint cannot be written: it
// could not be resumed, and a start that is planned anew would find the configuration of another plan in its way.
int train_claimed(Config& config, std::unique_ptr<Task>& task, std::optional<Trainer>& trainer, RunClaim& claimed,
                  SessionOptions with, std::optional<PlannedRun> plan) {
  const RunDirectory run(config.out);
  try {
    write_config(run, config);
    if (has_own_teachers(config)) return train_with_own_teachers(config, task, trainer, std::move(with), plan);
    return train_if_memory(config, *trainer, claimed, std::move(with), plan);
  } catch (const CheckpointError&) {
    if (!run.exists()) take_back(claimed, config);
    throw;
  }
}

void refuse_options_of_resumed_runs(const TrainOptions& options) {
  const std::pair<bool, const char*> given[] = {{!options.checkpoint.empty(), "checkpoint"},
                                                {options.rewarm, "rewarm"},
                                                {options.any_arithmetic, "any_arithmetic"}};
  for (const auto& [is_given, name] : given)
    check(!is_given, "{}: applies only to a run that is resumed; add --resume RUN, or omit the option", name);
}

}  // namespace

int start_run(const TrainOptions& options) {
  const auto start = PlannedStart::Clock::now();
  refuse_options_of_resumed_runs(options);
  check_epochs(options);
  const auto given = given_minutes(options.minutes, options.flags);
  std::optional<InitialWeights> weights;
  Config config = given_config(options, weights);
  const std::string first_corpus = config.corpus.front();
  const bool is_default = config.out.empty();
  if (is_default) config.out = default_run_path(first_corpus);
  RunDirectory(config.out).require_place();  // before anything is read
  std::optional<Corpus> prepared = read_prepared(config.corpus);
  const PairTokenizers known =
      known_tokenizers(options, weights, given_tokenizer(options, weights, prepared, config), prepared.has_value());
  const bool ends_with_run = config.lr_decay_steps == 0;
  std::optional<PlannedStart> planned;
  if (const auto minutes = planned_minutes(options, given)) {
    planned.emplace(options, *minutes, start);
    check_paths(config);
  } else {
    config = divided_among_ranks(config, options.flags, ranks().size());
    options.flags.complete(config);
  }
  use_threads(config);
  if (!is_default) require_unoccupied(RunDirectory(config.out));  // before time is spent on reading a large text
  announce_reading(config, planned.has_value());

  // The text itself is freed once it is encoded.
  std::unique_ptr<Task> task = [&] {
    const Corpus corpus = prepared ? std::move(*prepared) : read_corpus(config.corpus, corpus_options(config));
    if (planned) planned->choose_model(config, corpus, known.target);
    note_unread_specials(corpus, known.target.get(), config);
    return make_shared_task(config, corpus, known, options.special);
  }();
  if (planned) planned->choose_length(config, *task);
  config.corpus = absolute_sources(config.corpus);
  if (!options.epochs.empty()) set_epochs(options.epochs, *task, ends_with_run, config);
  begin_arithmetic(config);
  auto model = describe_run(config, *task, config.out, /*resumed=*/false, options.force);
  task = with_known_teachers(config, std::move(task), weights.has_value());
  share_training(config);
  std::optional<Trainer> trainer(std::in_place, config, *task, std::move(model),
                                 /*initial_values=*/!weights || weights->leaves_some(config, *task), ranks());
  load_initial_weights(weights, *trainer, config);
  const DeferInterrupts deferred;
  RunClaim claimed = claim_directory(config, is_default, first_corpus);
  if (!planned) return train_claimed(config, task, trainer, claimed, {}, std::nullopt);
  const auto record = [&](const Config& now) { write_config(RunDirectory(config.out), now); };
  return train_claimed(config, task, trainer, claimed, planned->session_options(record), planned->facts());
}

}  // namespace maki
