// maki train CORPUS…: a new run.
#include <algorithm>
#include <new>
#include <optional>

#include "autograd/core/storage.h"
#include "data/text/file.h"
#include "train/cli/describe_run.h"
#include "train/cli/initial_weights.h"
#include "train/cli/interrupt.h"
#include "train/cli/run_corpus.h"
#include "train/cli/run_session.h"
#include "train/cli/train_options.h"
#include "train/loop/tasks.h"
#include "train/run/new_run.h"

namespace maki {
namespace {

// The configuration of the new run, before the text is read.
Config new_config(const TrainOptions& options, std::optional<InitialWeights>& weights) {
  Config config;
  if (options.init_from.empty()) {
    options.flags.apply(config, "quickstart");
  } else {
    config = weights.emplace(options.init_from).make_config(options.flags);
  }
  if (!options.corpus.empty()) config.corpus = options.corpus;
  check(!config.corpus.empty(), "train: needs a CORPUS: a file, a directory, - or @stories");
  check((config.include.empty() && config.exclude.empty()) || std::ranges::any_of(config.corpus, is_directory),
        "include and exclude: apply only to the files of a directory; name a directory, or omit them");
  if (config.out.empty()) config.out = default_run_path(config.corpus.front());
  fill_dependent_defaults(config);
  validate(config);
  return config;
}

// Loads the initial weights of another run, if there are any, and records their hash.
void load_initial_weights(const std::optional<InitialWeights>& weights, Trainer& trainer, Config& config) {
  const std::string hash = weights ? weights->load(trainer.store()) : "";
  check(config.init_from.empty() || config.init_from == hash,
        "init_from: the configuration requires initial weights with hash {}; name their run with --init-from RUN",
        config.init_from);
  config.init_from = hash;
}

// Trains; takes the files of the run back if there is no memory for its first step.
int train_claimed(const Config& config, Trainer& trainer, const RunDirectory& run, RunClaim& claimed) {
  try {
    return run_session(config, trainer, run);
  } catch (const std::bad_alloc&) {
    if (trainer.steps() == 0) claimed.roll_back();
    throw;
  } catch (const OutOfMemoryError& error) {
    if (trainer.steps() > 0) throw;
    claimed.roll_back();
    fail("{} (--batch-size, --block-size, --n-embd); {} was removed again", error.what(), config.out);
  }
}

}  // namespace

int start_run(const TrainOptions& options) {
  check(options.checkpoint.empty() && !options.rewarm,
        "{}: applies only to a run that is resumed; add --resume RUN, or omit the option",
        options.rewarm ? "rewarm" : "checkpoint");
  std::optional<InitialWeights> weights;
  Config config = new_config(options, weights);
  use_threads(config);
  const RunDirectory run(config.out);
  require_unoccupied(run);  // before time is spent on reading a large text

  // The text itself is freed once it is encoded.
  const std::unique_ptr<Task> task = make_task(config, read_corpus(config.corpus, corpus_options(config)),
                                               weights ? weights->tokenizers() : PairTokenizers{});
  config.corpus = absolute_sources(config.corpus);
  check_epochs(options.epochs, *task);
  describe_run(config, *task, config.out, /*resumed=*/false);
  Trainer trainer(config, *task, /*initial_values=*/!weights);
  load_initial_weights(weights, trainer, config);
  const std::string echo = to_toml(config);
  const DeferInterrupts deferred;
  RunClaim claimed(run, echo);
  replace_file_atomically(posix_file_system(), run.config_file(), {text_bytes(echo)});
  return train_claimed(config, trainer, run, claimed);
}

}  // namespace maki
