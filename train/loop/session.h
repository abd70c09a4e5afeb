// A training session: the loop around the trainer that evaluates, saves checkpoints and reports to listeners. It can be
// interrupted at any time, and prints nothing.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/loop/best_checkpoint.h"
#include "train/loop/layer_changes.h"
#include "train/loop/time_limit.h"
#include "train/loop/trainer.h"
#include "train/run/checkpoint.h"
#include "train/run/listener.h"
#include "train/run/metrics.h"
#include "train/run/run_directory.h"

namespace maki {

/// How a session ended. `finished`: all steps are done, or the run was stopped early, because the model is overfitting.
/// `already_ended`: the run had been stopped early before, and nothing was done.
enum class SessionEnd : std::uint8_t { finished, already_ended, interrupted };

struct SessionOptions {
  /// Asked between micro-batches and evaluation batches, and while n-grams are counted or a sample is generated; once
  /// it is requested, the session saves the state and ends.
  StopRequest stop = {};
  /// Asked after that state is saved; if it returns true, the state is evaluated before the session ends. A user at the
  /// keyboard can wait for that; a system that is shutting down cannot.
  std::function<bool()> may_evaluate = {};
  /// With a time limit, the number of steps changes while the run goes on; without one it is max_steps.
  std::optional<TimeLimit> limit = {};
  /// The checkpoint of the run that the trainer was restored from, if any: it is neither read nor written again.
  const VerifiedCheckpoint* resumed = nullptr;
  /// What the session records about itself when it begins: Remark::text by kind.
  std::vector<std::pair<Remark::Kind, std::string>> remarks = {};
  /// What else is told of the session, after the listener that it was made with.
  std::vector<SessionListener*> listeners = {};
};

class Session {
 public:
  /// Opens metrics.jsonl, from which the lines of later steps are removed, and determines the best checkpoint anew, if
  /// need be by measuring it.
  ///
  /// Requires: the trainer has the state of the step to continue from, and the run directory exists and is locked. All
  /// arguments outlive the session. Throws CheckpointError if the run directory cannot be read or written, and
  /// DivergedError if the best checkpoint, measured again, has a loss that is not finite.
  Session(const Config& config, Trainer& trainer, const RunDirectory& run, SessionListener& listener,
          SessionOptions options = {});

  /// Trains up to max_steps, until early stopping, or until the stop request, and saves the state. Throws
  /// CheckpointError if something cannot be saved, DivergedError, and what a listener throws; the checkpoints that were
  /// saved before remain. A state that is not finite is never saved. Throws CorpusError if the text cannot be read any
  /// more, after saving the state of the last complete step: all of it was trained on the text as it was. Called once.
  SessionEnd train();

 private:
  using Clock = std::chrono::steady_clock;

  void report(const std::function<void(SessionListener&)>& event);
  void note(const std::string& sentence);
  bool is_intact(std::int64_t step);
  Config config_at(std::int64_t step) const;
  void save(bool text_is_readable = true);
  void save_and_point();
  void save_without_text();
  void prune();
  void count();
  double now() const;
  template <class F>
  auto timed(Work work, std::int64_t count, const F& act);
  EvalExtent extent() const { return {trainer_.eval_batches(false), trainer_.eval_batches(true)}; }
  bool covers_all_at_end() const;
  void decide_length();
  bool evaluate(const StopRequest& stop, bool whole);  // false: stopped
  std::optional<std::int64_t> overfitting_with(const EvalReport* newest) const;
  void report_overfitting(std::int64_t best_step, bool ends);
  bool write_sample();
  void remark(Remark::Kind kind, const std::string& text);
  void count_step(const StepReport& step, double seconds);
  bool take_steps();  // false: stopped
  SessionEnd stop_now();
  void finish();
  void report_best();
  double elapsed_seconds() const;

  Config config_;
  Trainer& trainer_;
  const RunDirectory& run_;
  StopRequest stop_;
  std::function<bool()> may_evaluate_;
  MetricsFile metrics_;
  std::vector<SessionListener*> listeners_;
  CheckpointState state_;
  std::map<std::int64_t, bool> intact_;  // the checkpoints that were written or looked at, by step
  BestCheckpoint best_;
  LayerChanges layers_;
  std::vector<std::pair<Remark::Kind, std::string>> remarks_;  // of the beginning
  std::set<std::string> pruning_notes_;
  std::optional<EvalReport> last_evaluation_;
  std::optional<StepBudget> budget_;
  WorkTimes times_;
  bool has_validation_, stopped_early_ = false, warned_ = false;
  double elapsed_before_;  // in earlier sessions
  Clock::time_point start_;
  double seconds_since_log_ = 0;
  std::int64_t tokens_since_log_ = 0, tokens_ = 0;  // tokens_: since step 0
};

}  // namespace maki
