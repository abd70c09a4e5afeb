// metrics.jsonl: what a run measured, one JSON object a line, all numbers finite.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/early_stop.h"
#include "train/file_system.h"
#include "train/trainer.h"

namespace maki {

class Metrics {
 public:
  /// Opens for appending. Cuts the file back to what was measured up to `step` (-1: nothing), a torn last line too.
  Metrics(std::string path, std::int64_t step, FileSystem& fs = posix());
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Throws Diverged, and writes nothing, when a number of the report is not finite. A measured time that is not is
  /// written as 0.
  void train(const StepReport& report, double tokens_per_second, double elapsed_seconds);
  void eval(const EvalReport& report);
  /// A text that the model wrote after `step` steps.
  void sample(std::int64_t step, const std::string& text);

  /// Makes all lines durable (fsync). Throws CheckpointError.
  void sync();

  /// The evaluation of a step, when the file has it.
  bool evaluated(std::int64_t step) const { return last_eval_ == step; }
  /// Likewise the text of a step.
  bool sampled(std::int64_t step) const { return last_sample_ == step; }
  /// Seconds of training that the lines kept on opening account for.
  double elapsed_before() const { return elapsed_; }
  /// The evaluations with a validation loss, of the lines kept on opening and of those written since. Of a line that
  /// covers the whole text for once, the loss over the share that the other lines cover.
  const std::vector<Measured>& validations() const { return validations_; }

 private:
  void append(const std::string& line);
  static double finite(std::int64_t step, const char* name, double value);
  static double measured_time(double value);
  std::string keep(const std::string& text, std::int64_t step);

  std::string path_;
  FileSystem& fs_;
  int descriptor_;
  std::int64_t last_eval_ = -1, last_sample_ = -1;
  double elapsed_ = 0;
  std::vector<Measured> validations_;
};

}  // namespace maki
