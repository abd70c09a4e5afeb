// maki train CORPUS… --out RUN      maki train --resume RUN [CORPUS…]
#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <memory>
#include <new>

#include "autograd/core/parallel.h"
#include "autograd/core/storage.h"
#include "autograd/kernels/target.h"
#include "data/error.h"
#include "train/checkpoint.h"
#include "train/error.h"
#include "train/flags.h"
#include "train/interrupt.h"
#include "train/loaded_model.h"
#include "train/new_run.h"
#include "train/progress.h"
#include "train/run_corpus.h"
#include "train/run_directory.h"
#include "train/run_lock.h"
#include "train/session.h"
#include "train/verbs.h"

namespace maki {
namespace {

struct TrainOptions {
  explicit TrainOptions(CLI::App& command) : flags(command) {}
  ConfigFlags flags;
  std::vector<std::string> corpus;
  std::string resume;
};

void say(const std::string& line) { to_stderr("{}\n", line); }

InvalidUtf8 policy(const Config& config) {
  return config.invalid_utf8 == "replace" ? InvalidUtf8::replace : InvalidUtf8::error;
}

void use_threads(Config& config) {
  if (config.threads > 0) set_threads(config.threads);
  config.target = kernels::target();
}

void say_start(const Config& config, const Dataset& data, Trainer& trainer, const std::string& run) {
  say(fmt::format("text   {}; vocabulary of {}; {} to train on, {} to validate", counted(data.characters, "character"),
                  grouped(data.tokenizer->vocab_size()), counted(static_cast<std::int64_t>(data.train.size()), "token"),
                  grouped(static_cast<std::int64_t>(data.val.size()))));
  say(fmt::format("model  {}, {}, {} wide, {} at once: {}", counted(config.n_layer, "layer"),
                  counted(config.n_head, "head"), config.n_embd, counted(config.block_size, "token"),
                  counted(trainer.store().numel(), "parameter")));
  say(fmt::format("run    {} of {} on {} ({}), in {}", counted(config.max_steps, "step"),
                  counted(config.batch_size * config.grad_accum * config.block_size, "token"),
                  counted(threads(), "thread"), config.target, run));
  if (config.warmup_steps > config.max_steps && config.max_steps > 0) {
    say(
        fmt::format("the warmup of {} does not end within {}: the learning rate stays below {}; a smaller "
                    "--warmup-steps lets it rise",
                    counted(config.warmup_steps, "step"), counted(config.max_steps, "step"), config.learning_rate));
  }
  const bool ends = config.schedule != "constant" && config.schedule != "inverse_sqrt";
  if (ends && config.max_steps > config.lr_decay_steps) {
    say(fmt::format("the schedule ends at step {}; from there on the learning rate stays at {}",
                    grouped(config.lr_decay_steps), config.min_lr));
  }
}

// A run can go on from the file, and it is what its name says.
void verify_checkpoint(const RunDirectory& run, const std::string& path) {
  const std::int64_t step = check_resumable(path).step;
  check<LostFile>(run.checkpoint_file(step) == path, "{}: holds the state of step {}", path, step);
}

int start(const TrainOptions& options) {
  Config config;
  options.flags.apply(config, "quickstart");
  if (!options.corpus.empty()) config.corpus = options.corpus;
  check(!config.corpus.empty(), "train: needs a CORPUS: a file, a directory, - or @stories");
  if (config.out.empty()) config.out = default_run_path(config.corpus.front());
  resolve(config);
  validate(config);
  use_threads(config);
  const RunDirectory run(config.out);
  require_free(run);  // before a large text is read

  const Corpus corpus = load_corpus(config.corpus, policy(config));
  config.corpus = absolute_sources(config.corpus);
  const Dataset data = make_dataset(corpus, config.val_fraction, config.block_size, config.tokenizer);
  Trainer trainer(config, data);
  const std::string echo = to_toml(config);
  const DeferInterrupts deferred;
  NewRun claimed(run, echo);
  commit_file(posix(), run.config_file(), {as_bytes(echo)});
  say_start(config, data, trainer, config.out);
  try {
    return Session(config, data, trainer, run).train();
  } catch (const std::bad_alloc&) {
    if (trainer.steps() == 0) claimed.take_back();
    throw;
  } catch (const OutOfMemory& error) {
    if (trainer.steps() > 0) throw;
    claimed.take_back();
    fail("{} (--batch-size, --block-size, --n-embd); {} was taken back", error.what(), config.out);
  }
}

int resume(const TrainOptions& options) {
  const RunDirectory run(options.resume);
  check(run.exists(), "{}: holds no run to resume", options.resume);
  const RunLock lock(run);
  for (const std::string& note : run.remove_temporary_files()) say(note);
  std::vector<std::string> notes;
  const std::int64_t step = run.newest_verified([&](const std::string& path) { verify_checkpoint(run, path); }, notes);
  for (const std::string& note : notes) say(note);
  const ContainerReader file(run.checkpoint_file(step));
  const CheckpointState state = read_state(file);

  // Training fields are the checkpoint's; run fields come from config.toml and then from the command line.
  Config config = state.config;
  if (file_exists(run.config_file())) apply_toml(config, read_whole(posix(), run.config_file()), run.config_file());
  for (const Field& field : fields()) {
    if (field.kind == FieldClass::training) {
      std::visit([&](auto member) { config.*member = state.config.*member; }, field.member);
    }
  }
  const std::string ran_on = config.target;
  options.flags.apply(config, "");
  config.out = options.resume;
  for (const Difference& difference : training_differences(state.config, config)) {
    fail("{}: is fixed for this run at {}; got {}; start a new run to change it", difference.name, difference.first,
         difference.second);
  }
  validate(config);
  use_threads(config);
  if (!ran_on.empty() && ran_on != config.target) {
    say(fmt::format(
        "this run was made on {} and goes on on {}: its results stay right, but not the same to the last bit", ran_on,
        config.target));
  }
  // A run that ended after its last save and before its last evaluation has that to do.
  const bool measured = step != config.max_steps || Metrics(run.metrics_file(), step).evaluated(step);
  if (step >= config.max_steps && measured) {
    say(fmt::format("{}: has reached step {} of {}; raise --max-steps to go on", options.resume, step,
                    config.max_steps));
    return 0;
  }

  config.corpus = sources_again(options.resume, absolute_sources(options.corpus), config.corpus);
  const Corpus corpus = load_corpus(config.corpus, policy(config));
  check<CorpusError>(
      corpus.hash == state.corpus_hash,
      "{}: is not the text of this run: its hash is {}, the run's is {}; start a new run for another text",
      fmt::join(config.corpus, " "), corpus.hash, state.corpus_hash);
  const Dataset data =
      make_dataset(corpus, config.val_fraction, config.block_size, config.tokenizer, load_tokenizer(state.tokenizer));
  Trainer trainer(config, data, /*initial_values=*/false);
  load_values(file, trainer.store());
  load_optimizer(file, step, trainer.optimizer());
  trainer.set_steps(step);
  const DeferInterrupts deferred;
  const std::string echo = to_toml(config);
  commit_file(posix(), run.config_file(), {as_bytes(echo)});
  say_start(config, data, trainer, options.resume);
  say(fmt::format("resumes after step {}", step));
  return Session(config, data, trainer, run).train();
}

}  // namespace

void add_train(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand("train", "Train a model on a text, or go on with a run");
  const auto options = std::make_shared<TrainOptions>(*command);
  command->add_option("CORPUS", options->corpus, "files, directories, - for standard input, @stories or @stories-ja");
  command->add_option("--resume", options->resume, "go on with the run in this directory")
      ->type_name("RUN")
      ->take_last();
  command->callback([options, &chosen] {
    chosen = [options] { return options->resume.empty() ? start(*options) : resume(*options); };
  });
}

}  // namespace maki
