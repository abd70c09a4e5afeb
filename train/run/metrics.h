// metrics.jsonl: the measurements of a run, one JSON object per line, all numbers finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/io/descriptor.h"
#include "train/run/history.h"

namespace maki {

/// The largest metrics file that is read, in bytes: 5 million lines of 200.
inline constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 30;

/// All of a metrics file. Throws CheckpointError if it cannot be read, or has more bytes than that.
std::string read_metrics_text(FileSystem& fs, const std::string& path);
/// What metrics.jsonl holds; lines that are no measurements are left out. A missing file holds nothing. Throws
/// CheckpointError if it cannot be read.
RunHistory read_history(const std::string& metrics_file);

/// Writes what a session reports, and provides what the run has measured before.
class MetricsFile final : public SessionListener {
 public:
  /// Opens the file for appending, after removing every line of a later step than `step` (-1: all lines) and every line
  /// that is not a JSON object with a whole number `step` of at least 0, such as one that was cut off. A link, or a
  /// file with a second name, is replaced by a copy, so that what it stands for is not appended to. Throws
  /// CheckpointError.
  MetricsFile(const std::string& path, std::int64_t step, FileSystem& fs = posix_file_system());

  /// Each appends a line. They throw DivergedError, and write nothing, if a number of the report is not finite, and
  /// CheckpointError if the line cannot be written. A measured time that is not finite is written as 0.
  void on_counting(const CountingReport& report) override;  ///< nothing if the file has such a line
  void on_log(const StepReport& report, double tokens_per_second, double elapsed_seconds) override;
  void on_eval(const EvalReport& report, bool best) override;
  void on_sample(std::int64_t step, const std::string& text) override;
  void on_layers(std::int64_t step, const std::vector<LayerReport>& layers) override;
  void on_remark(const Remark& remark) override;
  /// Makes all lines durable (fsync). Throws CheckpointError.
  void on_sync() override;

  /// Whether the file's newest evaluation is that of this step.
  bool has_eval(std::int64_t step) const { return !history_.evals().empty() && history_.evals().back().step == step; }
  /// Whether its newest generated text is that of this step.
  bool has_sample(std::int64_t step) const {
    return !history_.samples().empty() && history_.samples().back().step == step;
  }
  /// The lines that were kept on opening and those written since.
  const RunHistory& history() const { return history_; }

 private:
  void append(const std::string& line);
  static double finite(std::int64_t step, const char* name, double value);
  static double measured_time(double value);
  std::string keep(std::string_view text, std::int64_t step);

  std::optional<Descriptor> file_;
  RunHistory history_;
};

}  // namespace maki
