// maki train CORPUS… [--out RUN] [options]      maki train --resume RUN [CORPUS…] [options]
#include <memory>

#include "data/io/number.h"
#include "train/app/describe_run.h"
#include "train/app/progress.h"
#include "train/app/ranks.h"
#include "train/app/run_corpus.h"
#include "train/app/shared_run.h"
#include "train/app/train_options.h"
#include "train/app/verbs.h"

namespace maki {
namespace {

// Rank 0 of several prints, reads and writes like a process alone.
int run_as_rank(const TrainOptions& options) {
  constexpr double kUsualPatience = 60, kLeast = 0.1, kMost = 1e6;  // seconds
  keep_quiet(options.quiet || is_follower());
  const std::string& given = options.rank_timeout;
  join_ranks(given.empty() ? kUsualPatience : parse_number("rank_timeout", given, kLeast, kMost));
  check(given.empty() || ranks().size() > 1,
        "rank_timeout: applies to several ranks; start them with mpirun, or omit the option");
  const auto lead = [&] {
    const int code = options.resume.empty() ? start_run(options) : resume_run(options);
    end_shared_runs(code);
    return code;
  };
  return run_ranks(lead, follow_shared_runs);
}

}  // namespace

void add_train(const Command& command) {
  const auto options = std::make_shared<TrainOptions>(command);
  add_corpus_argument(command, options->corpus);
  command.add_option(
      "--minutes", options->minutes, "TIME",
      "learn as much as possible in this time, in minutes unless a unit follows, as in 90s or 1h: whatever no "
      "option sets is chosen from the text and from measured step times [1, unless there is --preset, --config, "
      "--max-steps, --epochs or --lr-decay-steps]");
  command.add_flag("--explain", options->explain,
                   "print every value that the plan of a run with a time limit chose, and why");
  command.add_option("--resume", options->resume, "RUN", "resume the run in this directory");
  command.add_option("--checkpoint", options->checkpoint, "best|STEP",
                     "checkpoint to go back to, the best or that of a step; needs --resume");
  command.add_flag(
      "--rewarm", options->rewarm,
      "start a new phase of the learning-rate schedule, which ends at --max-steps; --learning-rate, --min-lr "
      "and --warmup-steps describe it; needs --resume");
  command.add_flag("--any-arithmetic", options->any_arithmetic,
                   "continue with the fastest instructions of this machine, even if they change the last bits of the "
                   "results; needs --resume");
  command.add_option("--init-from", options->init_from, "RUN",
                     "start a new run with the weights of this run or checkpoint");
  command.add_option(
      "--tokenizer-file", options->tokenizer_file, "PATH",
      "use this tokenizer instead of a new one: that of a run, a tokenizer.json, vocab.json with merges.txt beside it, "
      "or .tiktoken file, or a directory that contains one");
  command.add_option("--epochs", options->epochs, "NUMBER",
                     "length of the run in passes over the training text, instead of a number of steps");
  add_special_option(command, "the text", options->special);
  add_memory_option(command, options->force);
  command.add_option("--rank-timeout", options->rank_timeout, "SECONDS",
                     "how long a rank may be silent before the run ends; for runs that mpirun has started [60]");
  command.add_flag("--quiet", options->quiet, "print only errors, which checkpoints are damaged, and the last line");
  for (const char* option : {"--help", "--minutes", "--resume", "--quiet"}) command.list_under(option, kCommonOptions);
  command.set_action([options] { return run_as_rank(*options); });
}

}  // namespace maki
