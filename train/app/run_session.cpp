#include "train/app/run_session.h"

#include <csignal>
#include <fmt/format.h>
#include <thread>
#include <utility>

#include "autograd/core/parallel.h"
#include "data/dataset/masking.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/shell_quote.h"
#include "train/app/arithmetic.h"
#include "train/app/bench/machine.h"
#include "train/app/event_file.h"
#include "train/app/interrupt.h"
#include "train/app/version.h"
#include "train/run/values_by_name.h"

namespace maki {
namespace {

// The end of the message about a run that has diverged: what to do. Training is deterministic: without a change it
// would diverge again.
std::string recovery_hint(const RunDirectory& run) {
  const std::vector<std::int64_t> saved = run.checkpoints();  // a state that is not finite is never saved
  const char* const new_run = "start a new run with a lower --learning-rate, or a lower --grad-clip above 0";
  if (saved.empty()) return fmt::format("; {}", new_run);
  return fmt::format(
      "; the last good checkpoint is step {0}; {1}, or return to that checkpoint with a lower learning rate: "
      "maki train --resume {2} --checkpoint {0} --rewarm --learning-rate RATE",
      saved.back(), new_run, shell_quote(run.path()));
}

// The rate at which the products of training steps could go at the measured peak of this machine; 0 where it is not
// shown.
double peak_tokens_per_second(Trainer& trainer) {
  constexpr double kMeasuringSeconds = 0.02;
  if (!is_stderr_terminal() || is_quiet()) return 0;
  const Config& config = trainer.config();
  return measure_product_flop_per_second(config.dtype, config.precision, kMeasuringSeconds) /
         flop_per_token(trainer.model(), trainer.store(), config.block_size);
}

std::string describe_machine(const Config& config) {
  return fmt::format("{}; {} of {} cores; {}; {}", version_text(), pluralize(threads(), "thread"),
                     std::thread::hardware_concurrency(), config.target, to_string(config.precision));
}

}  // namespace

SessionEnd show_session(const Config& config, Trainer& trainer, const RunDirectory& run, SessionOptions options,
                        std::optional<PlannedRun> plan) {
  Console console(config.max_steps, run.path(), trainer.task().best_possible_loss(), plan,
                  peak_tokens_per_second(trainer));
  if (!options.stop.may_be_requested()) options.stop = interrupt_request();
  if (!options.may_evaluate) options.may_evaluate = [] { return interrupted() == SIGINT; };
  options.remarks.emplace_back(Remark::Kind::session, describe_machine(config));
  EventFile events(run.path(), trainer.store());
  if (config.tensorboard) options.listeners.push_back(&events);
  const SessionEnd end = Session(config, trainer, run, console, std::move(options)).train();
  if (end == SessionEnd::finished)
    console.on_note(fmt::format("hash of the weights: {} (arithmetic: {})", hash_of_values(trainer.store()),
                                arithmetic_text(config)));
  return end;
}

int say_how_to_continue(const RunDirectory& run) {
  keep_quiet(false);
  say(fmt::format("continue with:  maki train --resume {}", shell_quote(run.path())));
  return interrupted() != 0 ? interrupt_exit_code() : 128 + SIGTERM;  // another rank was asked
}

int run_session(const Config& config, Trainer& trainer, const RunDirectory& run, SessionOptions options,
                std::optional<PlannedRun> plan) {
  const std::string path = shell_quote(run.path());
  const SessionEnd end = [&] {
    try {
      return show_session(config, trainer, run, std::move(options), plan);
    } catch (const DivergedError& error) {
      fail<DivergedError>("{}{}", error.what(), recovery_hint(run));
    } catch (const CorpusError& error) {
      fail<CorpusError>("{}; step {} is saved; to continue: maki train --resume {}", error.what(), trainer.steps(),
                        path);
    }
  }();
  const TaskRule& task = task_rule(config);
  if (end == SessionEnd::interrupted) {
    const int exit_code = say_how_to_continue(run);
    say(fmt::format("{} with:  maki {} {}", task.verb, task.verb, path));
    return exit_code;
  }
  keep_quiet(false);  // what follows is the result of the run: how to go on
  say(fmt::format("to {}: maki {} {}{}", task.purpose, task.verb, path,
                  task.fills_masks ? fmt::format(" --text 'TEXT WITH {}'", kMask) : ""));
  return 0;
}

}  // namespace maki
