// maki train CORPUS… [--out RUN] [options]      maki train --resume RUN [CORPUS…] [options]
#include <CLI/CLI.hpp>
#include <memory>

#include "data/text/corpus.h"
#include "train/cli/train_options.h"
#include "train/cli/verbs.h"

namespace maki {

void add_train(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand("train", "Train a model on a text, or resume a run");
  const auto options = std::make_shared<TrainOptions>(*command);
  command->add_option("CORPUS", options->corpus,
                      "files, directories, - for standard input, or a built-in text: " + builtin_corpora());
  command
      ->add_option("--minutes", options->minutes,
                   "learn as much as possible in this time: chooses whatever no option sets, from the text and from "
                   "measured step times [1, unless the number of steps is set, or a preset or file that sets it]")
      ->type_name("NUMBER")
      ->take_last();
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
  command
      ->add_option(
          "--tokenizer-file", options->tokenizer_file,
          "use this tokenizer instead of a new one: a tokenizer.json, vocab.json with merges.txt beside it, or "
          ".tiktoken file, or a directory that contains one")
      ->type_name("PATH")
      ->take_last();
  command->add_option("--epochs", options->epochs)->take_last()->group("");  // hidden: rejected with an explanation
  command->callback([options, &chosen] {
    chosen = [options] { return options->resume.empty() ? start_run(*options) : resume_run(*options); };
  });
}

}  // namespace maki
