#include "train/loop/session.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <sstream>

#include "train/run/error.h"
#include "train/loop/generate_text.h"
#include "train/loop/interrupt.h"
#include "train/loop/loaded_model.h"

namespace maki {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
bool stop() { return interrupted() != 0; }

}  // namespace

Session::Session(const Config& config, const Dataset& data, Trainer& trainer, const RunDirectory& run)
    : config_(config),
      data_(data),
      trainer_(trainer),
      run_(run),
      // A new run has no measurements: whatever the file contains is removed.
      metrics_(run.metrics_file(), run.exists() ? trainer.steps() : -1, run.file_system()),
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

// Whether there is an intact checkpoint of this step that belongs to this run. Throws CheckpointError if the file
// cannot be read.
bool Session::has(std::int64_t step) const {
  const std::string file = run_.checkpoint_file(step);
  if (!file_exists(file)) return false;
  try {
    const CheckpointState there = check_resumable(file, run_.file_system());
    return there.step == step && there.corpus_hash == state_.corpus_hash &&
           training_differences(there.config, config_at(step)).empty();
  } catch (const LostFile&) {
    return false;
  }
}

// The configuration that the checkpoint of a step records: without the phases that begin later.
Config Session::config_at(std::int64_t step) const {
  Config config = config_;
  config.phases = phases_before(config_, step);
  return config;
}

// Sets best_ to the best evaluation so far whose checkpoint is intact. The pointer `best` may differ: after falling
// back to an earlier checkpoint it may point to a later step, or its file may be gone.
void Session::find_best() {
  const std::optional<Best> named = run_.best();
  const bool reached = named && named->step <= trainer_.steps(), trained = named && named->step > 0;
  const bool usable = reached && trained && has(named->step);
  const double share = data_.val.empty() ? 1 : trainer_.val_share();
  std::vector<Measured> known = metrics_.validations();
  std::erase_if(known, [](const Measured& v) { return v.step == 0; });
  const auto same_share = [share](const Measured& v) { return v.share == share; };
  std::optional<Measured> found;
  if (usable && !std::ranges::all_of(known, same_share)) {
    // Losses over different parts of the text cannot be compared. When `best` was set, all were over the same part. The
    // loss in `best` may be over another part than the line of its step, if it was measured again after the part
    // changed.
    const auto line = std::ranges::find(known, named->step, &Measured::step);
    found = line == known.end() ? Measured{named->step, named->loss, 0, 0} : *line;
  } else {
    if (usable) known.insert(known.begin(), {named->step, named->loss, share, 0});
    std::ranges::stable_sort(known, {}, &Measured::loss);
    const auto whole = std::ranges::find_if(known, [&](const auto& candidate) { return has(candidate.step); });
    if (whole != known.end()) found = *whole;
  }
  if (found) best_ = Best{found->step, found->loss};
  if (named && !usable) {
    progress_.say(fmt::format("best points to step {}, {}; {}", named->step,
                              !reached   ? "which this run has not reached"
                              : !trained ? "whose weights are untrained"
                                         : "whose checkpoint is missing or damaged",
                              best_ ? fmt::format("the best is now step {}", best_->step) : "there is no best now"));
  }
  if (found && !same_share(*found)) {
    if (const auto loss = measure_again(found->step, /*whole=*/false)) {
      best_->loss = *loss;
      progress_.say(
          fmt::format("measured the best checkpoint (step {}) again, over the part of the validation text that "
                      "evaluations cover from here on: {}{}",
                      found->step, loss_text(*loss), share_text(share)));
    }
  }
  if (best_ && (!named || named->step != best_->step || named->loss != best_->loss)) run_.set_best(*best_);
  if (named && !best_) run_.clear_best();
}

// The validation loss of the checkpoint of another step; nullopt if interrupted. Afterwards the trainer's own values
// are loaded again from the checkpoint of its step, which exists whenever this is called.
std::optional<double> Session::measure_again(std::int64_t step, bool whole) {
  load_values(ContainerReader(run_.checkpoint_file(step), run_.file_system()), trainer_.store());
  const auto loss = trainer_.validation_loss(stop, whole);
  if (step != trainer_.steps())
    load_values(ContainerReader(run_.checkpoint_file(trainer_.steps()), run_.file_system()), trainer_.store());
  return loss;
}

void Session::save() {
  metrics_.sync();  // measurements must be durable before the checkpoint that they belong to
  state_.step = trainer_.steps();
  state_.config = config_at(state_.step);
  // A damaged file of this step is overwritten.
  if (has(state_.step)) return;
  trainer_.require_finite();
  write_checkpoint(run_.file_system(), run_.checkpoint_file(state_.step), state_, trainer_.store(),
                   trainer_.optimizer());
}

// Training continues if an old checkpoint cannot be deleted; each is reported once.
void Session::prune() {
  for (const std::string& note : run_.prune(config_.keep_last)) {
    if (pruning_notes_.insert(note).second) progress_.say(note);
  }
}

bool Session::evaluate(const std::function<bool()>& stop, bool whole) {
  auto report = trainer_.evaluate(stop, whole);
  if (!report) return false;
  const auto best_before = overfitting_with(&*report);
  const bool ends = best_before && config_.early_stop && report->step < config_.max_steps;
  if (ends && report->val_share < 1) {  // the last evaluation of a run covers the whole text
    report = trainer_.evaluate(stop, /*whole=*/true);
    if (!report) return false;
  }
  if (ends) {
    save();
    run_.set_last(report->step);
    prune();
  }
  last_evaluation_ = report;
  std::string line = fmt::format("step {}: training loss {:.4f}", report->step, report->train_loss);
  if (report->val_loss) {
    const double loss = report->measured().loss;
    // Step 0 is never the best: its weights are random, or those of another run.
    const bool best = report->step > 0 && (!best_ || loss < best_->loss);
    line += fmt::format(", validation {}{}", loss_text(*report->val_loss), share_text(report->val_share));
    if (report->sampled_val_loss)
      line += fmt::format(" on the whole text, {:.4f}{}", loss, share_text(report->sampled_val_share));
    if (best) {
      line += ", the best so far";
      save();
      best_ = Best{report->step, loss};
      run_.set_best(*best_);
      prune();
    }
  }
  // Last, so that a line in metrics.jsonl means that everything else about the evaluation was completed.
  metrics_.eval(*report);
  progress_.say(line);
  if (best_before) say_overfitting(*best_before, ends);
  stopped_early_ = ends;
  return true;
}

// Depends on metrics.jsonl alone, so that a resumed run ends at the same step as one that was never stopped. Only
// evaluations of the current phase of the schedule count.
std::optional<std::int64_t> Session::overfitting_with(const EvalReport* newest) const {
  if (data_.val.empty()) return std::nullopt;
  std::vector<Measured> evaluations = metrics_.validations();
  if (newest != nullptr) evaluations.push_back(newest->measured());
  if (evaluations.empty() || evaluations.back().step % config_.eval_interval != 0) return std::nullopt;
  const std::vector<Phase> begun = phases_before(config_, evaluations.back().step + 1);
  return overfitting_since(evaluations,
                           {.interval = config_.eval_interval,
                            .after = begun.empty() ? 0 : begun.back().start,
                            .share = trainer_.val_share()},
                           config_.patience);
}

void Session::say_overfitting(std::int64_t best, bool ends) {
  const std::string what = fmt::format(
      "the validation loss has not improved since step {}, while the training loss has fallen: the model is "
      "overfitting",
      best);
  if (ends) {
    progress_.say(fmt::format("stopped early: {}; to continue anyway: maki train --resume {} --no-early-stop", what,
                              shell_word(run_.path())));
  } else if (!warned_) {
    progress_.say(fmt::format("{}; the best checkpoint is kept", what));
    warned_ = true;
  }
}

// " on 51% of the text", or nothing for the whole text.
std::string Session::share_text(double share) const {
  return share == 1 ? "" : fmt::format(" on {:.3g}% of the text", 100 * share);
}

std::string Session::loss_text(double loss) const {
  if (!data_.best_loss) return fmt::format("{:.4f}", loss);
  return fmt::format("{:.4f} (best possible {:.4f})", loss, *data_.best_loss);
}

// Every sample_interval steps the model writes a short text. The text is a function of (weights, seed, step), so a
// resumed run writes the same as an uninterrupted one, and its random streams are not used by training.
void Session::write_sample() {
  constexpr std::int64_t kTokens = 100;
  const std::int64_t step = trainer_.steps(), interval = config_.sample_interval;
  if (interval == 0 || step == 0 || step % interval != 0 || metrics_.sampled(step)) return;
  TextOptions options;
  options.max_tokens = kTokens;
  options.sampling.seed = static_cast<std::uint64_t>(config_.seed);
  std::string text;
  try {
    const GeneratedText written = generate_text(
        trainer_.model(), *data_.tokenizer, start_of_text(*data_.tokenizer), options, static_cast<std::uint64_t>(step),
        [&](std::string_view piece) { text += piece; }, stop);
    if (written.end == TextEnd::interrupt) return;
  } catch (const BadLogits& error) {
    fail<Diverged>("diverged: step {}: {}", step, error.what());
  }
  metrics_.sample(step, text);
  progress_.say(fmt::format("step {}: sample of generated text:", step));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) progress_.say("  | " + line);
}

void Session::log(const StepReport& report) {
  progress_.advance(report.step);
  if (report.step % config_.log_interval != 0 && report.step != config_.max_steps) return;
  const double rate = per_second(static_cast<double>(report.tokens * timed_steps_), seconds_in_steps_);
  StepReport line = report;
  line.tokens = report.tokens * report.step;
  metrics_.train(line, rate, metrics_.elapsed_before() + seconds_since(start_));
  progress_.report(report.step, {fmt::format("loss {:.4f}", report.loss),
                                 fmt::format("{} tokens/s", grouped(static_cast<std::int64_t>(rate)))});
  seconds_in_steps_ = 0;
  timed_steps_ = 0;
}

int Session::train() {
  try {
    return train_to_end();
  } catch (const Diverged& error) {
    fail<Diverged>("{}{}", error.what(), way_back());
  }
}

// How to continue a run that has diverged. Training is deterministic: without a change it would diverge again.
std::string Session::way_back() const {
  const std::vector<std::int64_t> saved = run_.checkpoints();  // a state that is not finite is never saved
  if (saved.empty()) return "";
  return fmt::format(
      "; the last good checkpoint is step {0}; return to it with a lower learning rate: maki train --resume {1} "
      "--checkpoint {0} --rewarm --learning-rate RATE",
      saved.back(), shell_word(run_.path()));
}

// Shows an estimate after three steps. The first one is left out, because it allocates memory and is slower. Times are
// only shown: nothing depends on them.
void Session::say_time(double seconds) {
  constexpr std::int64_t kSteps = 3;
  constexpr double kDay = 24 * 3600;
  if (steps_here_ == kSteps) return;
  if (++steps_here_ > 1) seconds_of_estimate_ += seconds;
  const std::int64_t remaining = config_.max_steps - trainer_.steps();
  if (steps_here_ < kSteps || remaining == 0) return;
  const double each = seconds_of_estimate_ / (kSteps - 1), all = each * static_cast<double>(remaining);
  progress_.say(fmt::format("time   {:.3g} ms per step: about {} for the remaining {}", 1000 * each, duration(all),
                            counted(remaining, "step")));
  if (all > kDay) {
    progress_.say(
        "warning: this run will take more than a day; use fewer --max-steps or a smaller model, or stop it with Ctrl-C "
        "and resume it at any time");
  }
}

int Session::train_to_end() {
  if (const auto best = overfitting_with(nullptr); best && config_.early_stop && metrics_.evaluated(trainer_.steps())) {
    say_overfitting(*best, /*ends=*/true);
    return 0;
  }
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
    const bool interrupted_evaluation = due && !evaluate(stop, /*whole=*/end);
    if (!interrupted_evaluation) write_sample();
    if ((end || stopped_early_) && !interrupted_evaluation) break;

    const auto begin = Clock::now();
    const auto report = interrupted_evaluation ? std::nullopt : trainer_.step(stop);
    if (!report) return stop_interrupted();
    const double seconds = seconds_since(begin);
    seconds_in_steps_ += seconds;
    ++timed_steps_;
    say_time(seconds);
    log(*report);
  }
  finish();
  return 0;
}

// Saves first, so that nothing is lost whatever happens afterwards.
int Session::stop_interrupted() {
  const std::int64_t step = trainer_.steps();
  save();
  run_.set_last(step);
  prune();
  progress_.finish();
  progress_.say(fmt::format("interrupted: step {} is saved", step));
  // A user at the keyboard can wait for an evaluation or press Ctrl-C again; a system that shuts down cannot wait.
  const bool unmeasured = step > 0 && step < config_.max_steps && !data_.val.empty() && !metrics_.evaluated(step);
  if (unmeasured && interrupt_exit_code() == 128 + SIGINT) {
    progress_.say("evaluating this step, so that the best checkpoint is known; press Ctrl-C again to skip this");
    evaluate({}, /*whole=*/false);
  }
  metrics_.sync();
  const std::string run = shell_word(run_.path());
  progress_.say(fmt::format("continue with:  maki train --resume {}", run));
  progress_.say(fmt::format("generate with:  maki generate {}", run));
  return interrupt_exit_code();
}

void Session::finish() {
  metrics_.sync();
  progress_.finish();
  progress_.say(fmt::format("done: {} in {}, {:.2f} passes over the text", counted(trainer_.steps(), "step"),
                            duration(metrics_.elapsed_before() + seconds_since(start_)), trainer_.epochs()));
  say_best();
  progress_.say(fmt::format("to generate text: maki generate {}", shell_word(run_.path())));
}

// The loss of the best checkpoint over the whole validation text, as `maki eval` measures it.
void Session::say_best() {
  if (!best_) return;
  double loss = best_->loss, share = trainer_.val_share();
  if (share < 1) {
    const bool measured = last_evaluation_ && last_evaluation_->step == best_->step && last_evaluation_->val_share == 1;
    try {
      const auto whole = measured ? last_evaluation_->val_loss : measure_again(best_->step, /*whole=*/true);
      if (whole) {
        loss = *whole;
        share = 1;
      }
    } catch (const Error& error) {
      // The checkpoint is unreadable or its loss not finite, but the run is complete, and its end is reported anyway.
      progress_.say(error.what());
    }
  }
  progress_.say(fmt::format("best validation loss {}{} at step {}", loss_text(loss), share_text(share), best_->step));
}

}  // namespace maki
