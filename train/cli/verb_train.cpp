// maki train CORPUS… [--out RUN] [options]      maki train --resume RUN [CORPUS…] [options]
#include <memory>

#include "data/text/corpus.h"
#include "train/cli/progress.h"
#include "train/cli/require_memory.h"
#include "train/cli/train_options.h"
#include "train/cli/verbs.h"

namespace maki {

void add_train(const Command& maki) {
  const Command command = maki.add_verb("train", "Train a model on a text, or resume a run");
  const auto options = std::make_shared<TrainOptions>(command);
  command.add_argument("CORPUS", options->corpus,
                       "files, directories, - for standard input, or a built-in text: " + builtin_corpora());
  command.add_option(
      "--minutes", options->minutes, "TIME",
      "learn as much as possible in this time, in minutes, or such as 90s or 1h: chooses whatever no "
      "option sets, from the text and from measured step times [1, unless the number of steps is set, or "
      "a preset or file that sets it]");
  command.add_flag("--explain", options->explain,
                   "of a run that is planned: print every value that was chosen, and why");
  command.add_option("--resume", options->resume, "RUN", "resume the run in this directory");
  command.add_option("--checkpoint", options->checkpoint, "WHICH",
                     "with --resume: go back to this checkpoint (best or a step)");
  command.add_flag("--rewarm", options->rewarm,
                   "with --resume: start a new phase of the learning-rate schedule, which ends at --max-steps; "
                   "--learning-rate, --min-lr and --warmup-steps describe it");
  command.add_option("--init-from", options->init_from, "RUN",
                     "start a new run with the weights of this run or checkpoint");
  command.add_option(
      "--tokenizer-file", options->tokenizer_file, "PATH",
      "use this tokenizer instead of a new one: a tokenizer.json, vocab.json with merges.txt beside it, or "
      ".tiktoken file, or a directory that contains one");
  command.add_option("--epochs", options->epochs, "NUMBER",
                     "length of the run in passes over the training text, instead of a number of steps");
  add_special_option(command, "the text", options->special);
  add_memory_option(command, options->force);
  command.add_flag("--quiet", options->quiet, "print errors and the last line only");
  for (const char* option : {"--help", "--minutes", "--resume", "--quiet"}) command.list_under(option, kCommonOptions);
  command.set_action([options] {
    keep_quiet(options->quiet);
    return options->resume.empty() ? start_run(*options) : resume_run(*options);
  });
}

}  // namespace maki
