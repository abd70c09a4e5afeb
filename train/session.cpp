#include "train/session.h"

#include <algorithm>
#include <fmt/format.h>

#include "train/error.h"
#include "train/interrupt.h"
#include "train/loaded_model.h"

namespace maki {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
bool stop() { return interrupted() != 0; }

// Evaluations in a row with a rising loss before a word is said about it.
constexpr int kRises = 3;

}  // namespace

Session::Session(const Config& config, const Dataset& data, Trainer& trainer, const RunDirectory& run)
    : config_(config),
      data_(data),
      trainer_(trainer),
      run_(run),
      metrics_(run.metrics_file(), run.exists() ? trainer.steps() : -1),  // a new run begins with nothing measured
      progress_(config.max_steps, !stderr_is_terminal()),
      state_{.vocab_size = data.tokenizer->vocab_size(),
             .characters = data.characters,
             .train_tokens = static_cast<std::int64_t>(data.train.size()),
             .val_tokens = static_cast<std::int64_t>(data.val.size()),
             .corpus_hash = data.corpus_hash,
             .best_loss = data.best_loss.value_or(0),
             .config = config,
             .tokenizer = data.tokenizer->save()},
      start_(Clock::now()) {
  find_best();
}

// Is the checkpoint of this step there, whole, and of this run? Throws CheckpointError where that cannot be read.
bool Session::has(std::int64_t step) const {
  const std::string file = run_.checkpoint_file(step);
  if (!file_exists(file)) return false;
  try {
    const CheckpointState there = check_resumable(file, run_.file_system());
    return there.step == step && there.corpus_hash == state_.corpus_hash &&
           training_differences(there.config, config_).empty();
  } catch (const LostFile&) {
    return false;
  }
}

// The best of the evaluations up to here whose checkpoint is intact. `best` may say otherwise: it may come from a
// future that a fallback undid, or its file may be gone.
void Session::find_best() {
  std::vector<Best> known;
  const std::optional<Best> named = run_.best();
  if (named && named->step <= trainer_.steps()) known.push_back(*named);
  for (const auto& [step, loss] : metrics_.validations()) known.push_back({step, loss});
  std::ranges::stable_sort(known, {}, &Best::loss);
  const auto found = std::ranges::find_if(known, [&](const Best& best) { return has(best.step); });
  if (found != known.end()) best_ = *found;
  if (named && (named->step > trainer_.steps() || !has(named->step))) {
    progress_.say(fmt::format(
        "best names step {}, {}; {}", named->step,
        named->step > trainer_.steps() ? "which this run has not reached" : "whose checkpoint is missing or damaged",
        best_ ? fmt::format("the best is now step {}", best_->step) : "there is none now"));
  }
  if (best_ && (!named || named->step != best_->step)) run_.set_best(*best_);
  if (named && !best_) run_.clear_best();
}

void Session::save() {
  state_.step = trainer_.steps();
  // A damaged file of this step is written anew.
  if (!has(state_.step))
    write_checkpoint(run_.file_system(), run_.checkpoint_file(state_.step), state_, trainer_.store(),
                     trainer_.optimizer());
}

// Training goes on where an old checkpoint cannot be deleted; each is spoken of once.
void Session::prune() {
  for (const std::string& note : run_.prune(config_.keep_last)) {
    if (pruning_notes_.insert(note).second) progress_.say(note);
  }
}

bool Session::evaluate() {
  const auto report = trainer_.evaluate(stop);
  if (!report) return false;
  std::string line = fmt::format("step {}: training loss {:.4f}", report->step, report->train_loss);
  if (report->val_loss) {
    const double loss = *report->val_loss;
    const bool best = !best_ || loss < best_->loss;
    line += fmt::format(", validation {}{}", loss_text(loss), best ? ", the best so far" : "");
    if (best) {
      save();
      best_ = Best{report->step, loss};
      run_.set_best(*best_);
      prune();
    }
    rises_ = last_val_loss_ > 0 && loss > last_val_loss_ ? rises_ + 1 : 0;
    last_val_loss_ = loss;
  }
  // Last: who finds this line knows that all the rest of the evaluation was done.
  metrics_.eval(*report);
  progress_.say(line);
  if (rises_ == kRises) {
    progress_.say(
        fmt::format("the validation loss has risen {} times in a row: the model learns its text by heart; the best "
                    "checkpoint is kept",
                    kRises));
  }
  return true;
}

std::string Session::loss_text(double loss) const {
  if (!data_.best_loss) return fmt::format("{:.4f}", loss);
  return fmt::format("{:.4f} (best possible {:.4f})", loss, *data_.best_loss);
}

void Session::log(const StepReport& report) {
  progress_.advance(report.step);
  if (report.step % config_.log_interval != 0 && report.step != config_.max_steps) return;
  const double rate = static_cast<double>(report.tokens * timed_steps_) / seconds_in_steps_;
  StepReport line = report;
  line.tokens = report.tokens * report.step;
  metrics_.train(line, rate, metrics_.elapsed_before() + seconds_since(start_));
  progress_.report(report.step, {fmt::format("loss {:.4f}", report.loss),
                                 fmt::format("{} tokens/s", grouped(static_cast<std::int64_t>(rate)))});
  seconds_in_steps_ = 0;
  timed_steps_ = 0;
}

int Session::train() {
  progress_.advance(trainer_.steps());
  for (;;) {
    const std::int64_t step = trainer_.steps();
    const bool end = step == config_.max_steps;
    if (step == 0 || end || step % config_.checkpoint_interval == 0) {
      save();
      run_.set_last(step);
      prune();
    }
    const bool due = (end || step % config_.eval_interval == 0) && !metrics_.evaluated(step);
    const bool interrupted_evaluation = due && !evaluate();
    if (end && !interrupted_evaluation) break;

    const auto begin = Clock::now();
    const auto report = interrupted_evaluation ? std::nullopt : trainer_.step(stop);
    if (!report) {
      save();
      run_.set_last(step);
      prune();
      progress_.finish();
      progress_.say(fmt::format("interrupted: step {} is saved; go on with: maki train --resume {}", step,
                                shell_word(run_.path())));
      return interrupt_exit_code();
    }
    seconds_in_steps_ += seconds_since(begin);
    ++timed_steps_;
    log(*report);
  }
  finish();
  return 0;
}

void Session::finish() {
  progress_.finish();
  progress_.say(fmt::format("done: {} in {}, {:.2f} times through the text", counted(trainer_.steps(), "step"),
                            duration(metrics_.elapsed_before() + seconds_since(start_)), trainer_.epochs()));
  if (best_) progress_.say(fmt::format("best validation loss {} at step {}", loss_text(best_->loss), best_->step));
  progress_.say(fmt::format("now: maki generate {}", shell_word(run_.path())));
}

}  // namespace maki
