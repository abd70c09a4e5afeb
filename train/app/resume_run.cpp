// maki train --resume RUN.
#include <algorithm>
#include <fmt/format.h>

#include "data/dataset/token_file.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "train/app/arithmetic.h"
#include "train/app/begun_run.h"
#include "train/app/describe_run.h"
#include "train/app/epochs.h"
#include "train/app/interrupt.h"
#include "train/app/own_teachers.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/app/reading.h"
#include "train/app/resumed_config.h"
#include "train/app/run_corpus.h"
#include "train/app/run_session.h"
#include "train/app/shared_run.h"
#include "train/app/train_options.h"
#include "train/loop/tasks.h"
#include "train/run/run_lock.h"
#include "train/run/set_aside.h"
#include "train/run/verified_checkpoint.h"

namespace maki {
namespace {

void require_checkpoint(const RunDirectory& run) {
  if (run.exists()) return;
  fail("{}: is no run to resume; {}, or repeat the command that began it, if it ended before its first checkpoint",
       run.path(), advise_run(run.path()));
}

// The checkpoint to resume from: `choice`, or else the newest that can be resumed.
VerifiedCheckpoint resumed_checkpoint(const RunDirectory& run, const std::string& choice,
                                      std::vector<std::string>& notes) {
  if (choice.empty()) return newest_intact(run, notes);
  return ChosenCheckpoint(run.path(), choice, notes).read([&](const std::string& path) {
    return VerifiedCheckpoint(run, path);
  });
}

// The text must be the one that the checkpoint was trained on, split in the same way.
void check_counts(const VerifiedCheckpoint& from, const CheckpointState& data) {
  const CheckpointState& state = from.state();
  const bool same_counts = data.characters == state.characters && data.train_tokens == state.train_tokens &&
                           data.val_tokens == state.val_tokens;
  check<CheckpointError>(same_counts,
                         "{}: records a text of {} characters, {} training tokens and {} validation tokens, but the "
                         "text has {}, {} and {}; the checkpoint and the text do not match",
                         from.file().path(), state.characters, state.train_tokens, state.val_tokens, data.characters,
                         data.train_tokens, data.val_tokens);
}

void refuse_options_of_new_runs(const TrainOptions& options) {
  const std::vector<std::string> given = options.flags.given_fields();
  check(options.init_from.empty(),
        "init_from: starts a new run and cannot be combined with --resume; use only one of them");
  check(!options.special,
        "special: belongs to the tokenizer of a run, which a run that is resumed keeps; omit the option");
  check(options.tokenizer_file.empty(),
        "tokenizer_file: gives the tokenizer of a new run; a run that is resumed keeps its own; omit the option");
  check(!options.explain, "explain: applies to a run that is planned, and a run that is resumed is not; omit it");
  check(
      std::ranges::find(given, "out") == given.end(),
      "out: a run that is resumed stays in its directory; omit the option, or copy the directory and resume the copy");
  check(options.minutes.empty(),
        "minutes: plans a new run; a run that is resumed keeps its number of steps; omit the option, or set "
        "--max-steps");
}

// With tokens of the same text that were prepared with special tokens, where the run has learned it without, or the
// other way round, the run would continue on other ids.
void require_same_encoding(const Corpus& corpus, const Tokenizer& tokenizer) {
  const bool other =
      corpus.prepared && corpus.prepared->tokenizer && !tokenizer.encodes_like(*corpus.prepared->tokenizer);
  check<CorpusError>(!other,
                     "{}: was prepared with a tokenizer that reads special tokens in another way than that of this "
                     "run; prepare the text with the run as --tokenizer-file, without --special",
                     corpus.files.at(0));
}

// The task on the text of the run, whose sources `config` then names.
std::unique_ptr<Task> resumed_task(const TrainOptions& options, Config& config, const VerifiedCheckpoint& from) {
  config.corpus = resume_sources(options.resume, absolute_sources(options.corpus), config.corpus);
  const char* const advice =
      options.corpus.empty() ? "restore it, or start a new run to train on another text"
                             : "name its files in the order of before, with the options that say how they were read, "
                               "such as --json-field or --documents, or start a new run to train on another text";
  const Corpus corpus = reread_corpus(config, from.state().corpus_hash, advice);
  const PairTokenizers tokenizers = load_tokenizers(from.state());
  std::unique_ptr<Task> task = make_shared_task(config, corpus, tokenizers, /*finds_specials=*/false);
  require_same_encoding(corpus, *tokenizers.target);
  check_counts(from, task->data_state());
  return task;
}

// A resumed run may have phases, and with --rewarm the options of the learning rate describe a new one.
void require_effect(const TrainOptions& options, Config config) {
  config.phases.clear();
  if (!options.corpus.empty()) config.corpus = options.corpus;  // which may be a text, and the stored one its tokens
  options.flags.require_effect(config);
}

// Makes the chosen checkpoint, of this step, the last one of the run, and records the configuration.
void record_return(const TrainOptions& options, const RunDirectory& run, const Config& config, std::int64_t step) {
  const std::string folder = options.checkpoint.empty() ? "" : move_later_checkpoints(run, step);
  if (!folder.empty())
    say(fmt::format("moved the checkpoints after step {} to {}, with a copy of metrics.jsonl", step, folder));
  write_config(run, config);
}

}  // namespace

int resume_run(const TrainOptions& options) {
  refuse_options_of_new_runs(options);
  check_epochs(options);
  const RunDirectory run(options.resume);
  require_checkpoint(run);
  const RunLock lock(run);
  clear_up(run);
  std::vector<std::string> notes;
  const VerifiedCheckpoint from = resumed_checkpoint(run, options.checkpoint, notes);
  for (const std::string& note : notes) warn(note);
  const std::int64_t step = from.state().step;

  std::string ran_on;
  std::unique_ptr<Task> task;
  ResumeOptions resumed{options.flags, options.resume, options.rewarm};
  if (!options.epochs.empty()) {
    Config config =
        resumed_config({options.flags, options.resume, options.rewarm, static_cast<std::int64_t>(kMaxCount)}, run,
                       from.state(), ran_on);
    task = resumed_task(options, config, from);
    resumed.max_steps = steps_of_epochs(options.epochs, *task);
  }
  Config config = resumed_config(resumed, run, from.state(), ran_on);
  validate(config);
  require_effect(options, config);
  check(options.checkpoint.empty() || step < config.max_steps,
        "checkpoint: its step {} must be below max_steps {}; raise --max-steps to continue from it", step,
        config.max_steps);
  if (is_finished(config, run, step)) {
    describe_finished_run(config, options.resume, step);
    return 0;
  }

  keep_arithmetic(config, ran_on, options.any_arithmetic);
  use_threads(config);
  config.corpus = resume_sources(options.resume, absolute_sources(options.corpus), config.corpus);
  to_toml(config);  // throws if it cannot be stored, before any file is moved
  if (!task) task = resumed_task(options, config, from);
  auto model = describe_run(config, *task, options.resume, /*resumed=*/true, options.force);
  if (has_own_teachers(config) && config.taught_by.empty()) record_return(options, run, config, step);
  if (const auto exit_code = train_own_teachers(config, *task, run)) return *exit_code;
  task = with_teachers(config, std::move(task), run);
  share_training(config);
  Trainer trainer(config, *task, std::move(model), /*initial_values=*/false, ranks());
  trainer.restore(from);
  const DeferInterrupts deferred;
  record_return(options, run, config, step);
  say(fmt::format("resuming after step {}", step));
  return run_session(config, trainer, run, {.resumed = &from});
}

}  // namespace maki
