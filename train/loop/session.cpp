#include "train/loop/session.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "data/io/error.h"
#include "nn/generate/sampler.h"

namespace maki {

Session::Session(const Config& config, Trainer& trainer, const RunDirectory& run, SessionListener& listener,
                 SessionOptions options)
    : config_(config),
      trainer_(trainer),
      run_(run),
      stop_(std::move(options.stop)),
      may_evaluate_(std::move(options.may_evaluate)),
      // A new run has no measurements: whatever the file contains is removed.
      metrics_(run.metrics_file(), run.exists() ? trainer.steps() : -1, run.file_system()),
      // metrics.jsonl comes first: what is shown has been recorded.
      listeners_{&metrics_, &listener},
      state_(trainer.task().data_state()),
      best_(
          trainer, run, first_learned_step(config), [this](std::int64_t step) { return is_intact(step); },
          [this](const std::string& sentence) { note(sentence); }),
      layers_(trainer.store()),
      remarks_(std::move(options.remarks)),
      has_validation_(trainer.task().eval_batches(Part::val) > 0),
      elapsed_before_(metrics_.history().elapsed_seconds()),
      start_(Clock::now()) {
  listeners_.insert(listeners_.end(), options.listeners.begin(), options.listeners.end());
  if (options.limit) budget_.emplace(std::move(*options.limit));
  if (options.resumed != nullptr) intact_[options.resumed->state().step] = true;
  best_.find(metrics_.history().validations(), stop_);
}

void Session::report(const std::function<void(SessionListener&)>& event) {
  for (SessionListener* const listener : listeners_) event(*listener);
}

void Session::note(const std::string& sentence) {
  report([&](SessionListener& listener) { listener.on_note(sentence); });
}

void Session::remark(Remark::Kind kind, const std::string& text) {
  const Remark remark{kind, trainer_.steps(), text, kind == Remark::Kind::end ? elapsed_seconds() : 0};
  report([&](SessionListener& listener) { listener.on_remark(remark); });
}

double Session::elapsed_seconds() const {
  return elapsed_before_ + std::chrono::duration<double>(Clock::now() - start_).count();
}

// The clock that a time limit counts by.
double Session::now() const { return budget_ ? budget_->limit().elapsed() : elapsed_seconds(); }

// The result of act(), whose time counts as that of `count` pieces of work.
template <class F>
auto Session::timed(Work work, std::int64_t count, const F& act) {
  const double begin = now();
  auto result = act();
  times_.add(work, now() - begin, count);
  return result;
}

// Whether the last evaluation covers the whole validation text. Where that would take too long, a run with a time limit
// keeps its time instead.
bool Session::covers_all_at_end() const {
  return !budget_ || affordable(extent(), times_, budget_->limit().seconds).last == extent().last;
}

// With a time limit: the number of steps that fit into it. What follows from a new number is recorded before the first
// step that depends on it, so a resumed run continues in the same way.
void Session::decide_length() {
  if (!budget_ || trainer_.steps() == config_.max_steps) return;
  const auto steps = budget_->decide(times_, config_, extent(), trainer_.steps());
  if (!steps) return;
  set_last_step(config_, trainer_.steps(), *steps);
  budget_->limit().record(config_);
  trainer_.set_phases(config_.phases);
  report([&](SessionListener& listener) { listener.on_new_length(trainer_.steps(), *steps); });
}

// Whether there is an intact checkpoint of this step that belongs to this run. Reads each file once, and none that this
// session has written or resumed from. Throws CheckpointError if the file cannot be read.
bool Session::is_intact(std::int64_t step) {
  const auto [known, is_new] = intact_.try_emplace(step, false);
  const std::string file = run_.checkpoint_file(step);
  if (!is_new || !file_exists(file)) return known->second;
  try {
    const VerifiedCheckpoint checkpoint(file, trainer_.trainable(), run_.file_system());
    const CheckpointState& there = checkpoint.state();
    known->second = there.step == step && there.corpus_hash == state_.corpus_hash &&
                    training_differences(there.config, config_at(step)).empty();
  } catch (const CorruptFile&) {
    return false;
  }
  return known->second;
}

// The configuration that the checkpoint of a step records: without the phases that begin later.
Config Session::config_at(std::int64_t step) const {
  Config config = config_;
  config.phases = phases_before(config_, step);
  if (step == 0 && has_own_teachers(config)) config.taught_by.clear();  // they are trained after that checkpoint
  return config;
}

void Session::save(bool text_is_readable) {
  // Measurements must be durable before the checkpoint that they belong to.
  report([](SessionListener& listener) { listener.on_sync(); });
  state_.step = trainer_.steps();
  state_.config = config_at(state_.step);
  const double begin = now();
  const std::string file = run_.checkpoint_file(state_.step);
  // A file that this session knows nothing of may be damaged; if it is not, it gets the bytes that it had.
  const bool is_saved = intact_[state_.step] && file_exists(file);
  if (!is_saved) {
    trainer_.require_finite(text_is_readable);
    write_checkpoint(run_.file_system(), file, state_, trainer_.store(), trainer_.optimizer(), trainer_.carried());
    intact_[state_.step] = true;
  }
  times_.add(Work::checkpoint, now() - begin, is_saved ? 0 : 1);
}

void Session::save_and_point() {
  save();
  run_.set_last(trainer_.steps());
  prune();
}

// Deletes no older checkpoint: without the text, a state whose values are finite may still have a loss that is not.
void Session::save_without_text() {
  save(/*text_is_readable=*/false);
  run_.set_last(trainer_.steps());
}

// Training continues if an old checkpoint cannot be deleted; each is reported once.
void Session::prune() {
  for (const std::string& sentence : run_.prune(config_.keep_last)) {
    if (pruning_notes_.insert(sentence).second) note(sentence);
  }
}

bool Session::evaluate(const StopRequest& stop, bool whole) {
  auto evaluation =
      timed(Work::eval_batch, trainer_.eval_batches(whole), [&] { return trainer_.evaluate(stop, whole); });
  if (!evaluation) return false;
  const auto find_overfitting = overfitting_with(&*evaluation);
  const bool ends = find_overfitting && config_.early_stop && evaluation->step < config_.max_steps;
  if (ends && evaluation->val_share < 1 && covers_all_at_end()) {
    evaluation = trainer_.evaluate(stop, /*whole=*/true);
    if (!evaluation) return false;
  }
  if (ends) save_and_point();
  last_evaluation_ = evaluation;
  const bool best = evaluation->val_loss && best_.is_improved_by(evaluation->point());
  if (best) {
    save();
    best_.set(evaluation->point());
    prune();
  }
  // Last, so that a line in metrics.jsonl means that everything else about the evaluation was completed.
  report([&](SessionListener& listener) { listener.on_eval(*evaluation, best); });
  if (find_overfitting) report_overfitting(*find_overfitting, ends);
  stopped_early_ = ends;
  return true;
}

// Depends on metrics.jsonl alone, so that a resumed run ends at the same step as one that was never stopped. Only
// evaluations since the schedule last began anew count.
std::optional<std::int64_t> Session::overfitting_with(const EvalReport* newest) const {
  if (!has_validation_) return std::nullopt;
  std::vector<EvalPoint> evaluations = metrics_.history().validations();
  if (newest != nullptr) evaluations.push_back(newest->point());
  if (evaluations.empty() || evaluations.back().step % config_.eval_interval != 0) return std::nullopt;
  const std::int64_t restart = last_begun_phase(config_, evaluations.back().step + 1).start;
  return find_overfitting(evaluations,
                          {.interval = config_.eval_interval,
                           .after = restart > 0 ? restart : first_learned_step(config_) - 1,
                           .share = trainer_.val_share()},
                          config_.patience);
}

void Session::report_overfitting(std::int64_t best_step, bool ends) {
  if (!ends && std::exchange(warned_, true)) return;
  report([&](SessionListener& listener) { listener.on_overfitting(best_step, ends); });
}

// The text is a function of (weights, seed, step), so a resumed run writes the same as an uninterrupted one, and its
// random streams are not used by training. Returns false if `stop` was requested before it was written.
bool Session::write_sample() {
  const std::int64_t step = trainer_.steps(), interval = config_.sample_interval;
  if (interval == 0 || step == 0 || step % interval != 0 || metrics_.has_sample(step)) return true;
  std::optional<std::string> text;
  try {
    text = timed(Work::sample, 1, [&] {
      return trainer_.task().sample(trainer_.model(), static_cast<std::uint64_t>(config_.seed), step, stop_);
    });
  } catch (const BadLogitsError& error) {
    fail<DivergedError>("diverged: step {}: {}", step, error.what());
  }
  if (text) report([&](SessionListener& listener) { listener.on_sample(step, *text); });
  return text || !stop_.requested();
}

void Session::count_step(const StepReport& step, double seconds) {
  times_.add(Work::step, seconds);
  seconds_since_log_ += seconds;
  tokens_since_log_ += step.tokens;
  tokens_ += step.tokens;
  report([&](SessionListener& listener) { listener.on_step(step, seconds); });
  if (step.step % config_.log_interval != 0 && step.step != config_.max_steps) return;
  // A clock that does not advance must not give an infinite rate.
  const double rate = static_cast<double>(tokens_since_log_) / seconds_since_log_;
  StepReport total = step;
  total.tokens = tokens_;
  report([&](SessionListener& listener) { listener.on_log(total, std::isfinite(rate) ? rate : 0, elapsed_seconds()); });
  seconds_since_log_ = 0;
  tokens_since_log_ = 0;
}

// What counting alone reaches is the same at every resume, so it is read from metrics.jsonl if it is there.
void Session::count() {
  if (!config_.counting || !has_validation_) return;
  std::optional<CountingReport> counted = metrics_.history().counting();
  try {
    if (!counted && (counted = trainer_.task().counting(stop_))) counted->step = trainer_.steps();
  } catch (const std::bad_alloc&) {
    return note("there is not enough memory to count n-grams for comparison");
  }
  if (counted) report([&](SessionListener& listener) { listener.on_counting(*counted); });
}

SessionEnd Session::train() {
  if (const auto best = overfitting_with(nullptr); best && config_.early_stop && metrics_.has_eval(trainer_.steps())) {
    report_overfitting(*best, /*ends=*/true);
    if (metrics_.history().is_complete()) return SessionEnd::already_ended;
    stopped_early_ = true;  // and only its last sample or its end is missing
  }
  tokens_ = trainer_.task().tokens_before(trainer_.steps());
  report([&](SessionListener& listener) { listener.on_start(trainer_.steps(), metrics_.history()); });
  try {
    if (!take_steps()) return stop_now();
  } catch (const CorpusError&) {
    save_without_text();
    remark(Remark::Kind::end, "text unreadable");
    report([](SessionListener& listener) { listener.on_sync(); });
    throw;
  }
  finish();
  return SessionEnd::finished;
}

bool Session::take_steps() {
  bool begun = false;
  for (;;) {
    decide_length();
    const std::int64_t step = trainer_.steps();
    const bool end = step == config_.max_steps;
    if (step == 0 || end || step % config_.checkpoint_interval == 0) save_and_point();
    if (!std::exchange(begun, true)) {  // not before there is a checkpoint: until then a run can begin anew
      for (const auto& [kind, text] : remarks_) remark(kind, text);
      count();
    }
    const bool due = (end || step % config_.eval_interval == 0) && !metrics_.has_eval(step);
    const bool evaluated = !due || evaluate(stop_, /*whole=*/end && covers_all_at_end());
    const bool interrupted = !evaluated || !write_sample();
    if ((end || stopped_early_) && !interrupted) return true;

    const bool observed = step + 1 == config_.max_steps || (step + 1) % config_.eval_interval == 0;
    if (observed) layers_.before_step();
    const double begin = now();
    const auto result = interrupted ? std::nullopt : trainer_.step(stop_);
    if (!result) return false;
    count_step(*result, now() - begin);
    if (observed) report([&](SessionListener& listener) { listener.on_layers(step + 1, layers_.after_step()); });
  }
}

// Saves first, so that nothing is lost whatever happens afterwards.
SessionEnd Session::stop_now() {
  const std::int64_t step = trainer_.steps();
  save_and_point();
  const bool unmeasured = step > 0 && step < config_.max_steps && has_validation_ && !metrics_.has_eval(step);
  const bool evaluates = unmeasured && may_evaluate_ && may_evaluate_();
  report([&](SessionListener& listener) { listener.on_interrupt(step, evaluates); });
  if (evaluates) evaluate({}, /*whole=*/false);
  remark(Remark::Kind::end, Remark::kInterrupted);
  report([](SessionListener& listener) { listener.on_sync(); });
  return SessionEnd::interrupted;
}

void Session::finish() {
  remark(Remark::Kind::end, stopped_early_ ? "overfitting" : "finished");
  report([](SessionListener& listener) { listener.on_sync(); });
  report(
      [&](SessionListener& listener) { listener.on_finish(trainer_.steps(), elapsed_seconds(), trainer_.epochs()); });
  report_best();
}

// The loss of the best checkpoint over the whole validation text, as `maki eval` measures it.
void Session::report_best() {
  const std::optional<BestPointer>& best = best_.best();
  if (!best) return;
  double loss = best->loss, share = trainer_.val_share();
  if (share < 1 && covers_all_at_end()) {
    const bool measured = last_evaluation_ && last_evaluation_->step == best->step && last_evaluation_->val_share == 1;
    try {
      const auto whole = measured ? last_evaluation_->val_loss : best_.measure(best->step, /*whole=*/true, stop_);
      if (whole) {
        loss = *whole;
        share = 1;
      }
    } catch (const RankError&) {
      throw;
    } catch (const Error& error) {
      // The checkpoint is unreadable or its loss not finite, but the run is complete, and its end is reported anyway.
      note(error.what());
    }
  }
  report([&](SessionListener& listener) { listener.on_best(best->step, loss, share); });
}

}  // namespace maki
