// What a run has measured, in the order of its steps: what metrics.jsonl holds, for curves, tables and pages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/run/listener.h"
#include "train/run/metrics_line.h"

namespace maki {

/// A line about training: SessionListener::on_log().
struct LoggedStep {
  StepReport step;
  double tokens_per_second = 0, elapsed_seconds = 0;
};

struct Sample {
  std::int64_t step = 0;
  std::string text;
};

struct LoggedLayers {
  std::int64_t step = 0;
  std::vector<LayerReport> layers;
};

/// The kind of a line of metrics.jsonl with a remark: "plan", "session" or "end".
const char* to_string(Remark::Kind kind);

/// Listens to a session, after it has read what earlier sessions of the run wrote.
class RunHistory final : public SessionListener {
 public:
  /// Appends what a line of metrics.jsonl holds; nothing if it is no measurement.
  void add(const MetricsLine& line);
  void on_counting(const CountingReport& report) override { counting_ = report; }
  void on_log(const StepReport& step, double tokens_per_second, double elapsed_seconds) override {
    steps_.push_back({step, tokens_per_second, elapsed_seconds});
  }
  void on_eval(const EvalReport& report, bool /*best*/) override { evals_.push_back(report); }
  void on_sample(std::int64_t step, const std::string& text) override { samples_.push_back({step, text}); }
  void on_layers(std::int64_t step, const std::vector<LayerReport>& layers) override {
    layers_.push_back({step, layers});
  }
  void on_remark(const Remark& remark) override { remarks_.push_back(remark); }

  const std::vector<LoggedStep>& steps() const { return steps_; }
  const std::vector<EvalReport>& evals() const { return evals_; }
  const std::vector<Sample>& samples() const { return samples_; }
  const std::vector<LoggedLayers>& layers() const { return layers_; }
  const std::vector<Remark>& remarks() const { return remarks_; }
  const std::optional<CountingReport>& counting() const { return counting_; }
  /// The evaluations that have a validation loss. Of one that covers the whole text, this is the loss over the share
  /// that the other evaluations cover.
  std::vector<EvalPoint> validations() const;
  /// Whether all these evaluations cover this share of the validation text, so that losses over it compare with theirs.
  bool evaluations_cover(double share) const;
  /// Whether the last session has ended and was not interrupted; true as well without remarks, which files of older
  /// versions do not have.
  bool is_complete() const;
  double elapsed_seconds() const;  ///< of training, over all sessions, up to the last line that says it

 private:
  std::vector<LoggedStep> steps_;
  std::vector<EvalReport> evals_;
  std::vector<Sample> samples_;
  std::vector<LoggedLayers> layers_;
  std::vector<Remark> remarks_;
  std::optional<CountingReport> counting_;
};

/// The training losses of a history without their noise: an exponential mean over about a fiftieth of the lines, and at
/// least five, which begins as the plain mean.
std::vector<double> smoothed_losses(const std::vector<LoggedStep>& steps);
/// The lowest and the highest of the newest losses, as many as that mean covers. Requires: there are some.
std::pair<double, double> recent_losses(const std::vector<LoggedStep>& steps);

}  // namespace maki
