#include "train/run/metrics.h"

#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <system_error>

#include "data/io/error.h"
#include "data/io/file.h"

namespace maki {

using nlohmann::ordered_json;

namespace {

// The first line, without its newline, which is removed from the text.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

// Whether writing to the file writes to nothing else: to no target of a link, and to no file of another name.
bool is_alone(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
}

}  // namespace

std::string read_metrics_text(FileSystem& fs, const std::string& path) {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  check<CheckpointError>(unknown || size <= kMaxMetricsBytes,
                         "{}: must have at most {} bytes; got {}; a run needs only its lines of kind eval to go on: "
                         "keep a copy, and remove others",
                         path, kMaxMetricsBytes, size);
  return read_file_limited(fs, path, kMaxMetricsBytes);
}

RunHistory read_history(const std::string& metrics_file) {
  RunHistory history;
  if (!file_exists(metrics_file)) return history;
  const std::string text = read_metrics_text(posix_file_system(), metrics_file);
  for (std::string_view rest = text; !rest.empty();) {
    if (const auto line = read_metrics_line(next_line(rest))) history.add(*line);
  }
  return history;
}

MetricsFile::MetricsFile(const std::string& path, std::int64_t step, FileSystem& fs) {
  const bool there = file_exists(path);
  if (there) {
    const std::string before = read_metrics_text(fs, path), kept = keep(before, step);
    if (kept != before || !is_alone(path)) replace_file_atomically(fs, path, {text_bytes(kept)});
  }
  file_.emplace(fs, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
  if (!there) sync_directory(fs, parent_directory(path));
}

// Returns the lines up to `step`, and records what they contain.
std::string MetricsFile::keep(std::string_view text, std::int64_t step) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view words = next_line(text);
    const std::optional<MetricsLine> line = read_metrics_line(words);
    if (!line || line->step > step) continue;
    kept.append(words) += '\n';
    history_.add(*line);
  }
  return kept;
}

// JSON cannot express a number that is not finite: nlohmann-json would write null.
double MetricsFile::finite(std::int64_t step, const char* name, double value) {
  check<DivergedError>(std::isfinite(value), "step {}: {} is {}; the run has diverged", step, name, value);
  return value;
}

// Times have no influence on a run, so a clock that does not advance or jumps must not count as divergence.
double MetricsFile::measured_time(double value) { return std::isfinite(value) ? value : 0; }

void MetricsFile::on_counting(const CountingReport& report) {
  if (history_.counting()) return;
  append(ordered_json{{"kind", "counting"},
                      {"step", report.step},
                      {"order", report.order},
                      {"val_loss", finite(report.step, "val_loss", report.val_loss)},
                      {"nats_per_character", finite(report.step, "nats_per_character", report.nats_per_character)},
                      {"train_share", report.train_share},
                      {"val_share", report.val_share}}
             .dump());
  history_.on_counting(report);
}

void MetricsFile::on_log(const StepReport& report, double tokens_per_second, double elapsed_seconds) {
  append(ordered_json{{"kind", "train"},
                      {"step", report.step},
                      {"loss", finite(report.step, "loss", report.loss)},
                      {"learning_rate", finite(report.step, "learning_rate", report.learning_rate)},
                      {"grad_norm", finite(report.step, "grad_norm", report.grad_norm)},
                      {"tokens", report.tokens},
                      {"tokens_per_second", measured_time(tokens_per_second)},
                      {"elapsed_seconds", measured_time(elapsed_seconds)}}
             .dump());
  history_.on_log(report, measured_time(tokens_per_second), measured_time(elapsed_seconds));
}

void MetricsFile::on_eval(const EvalReport& report, bool best) {
  ordered_json line{
      {"kind", "eval"}, {"step", report.step}, {"train_loss", finite(report.step, "train_loss", report.train_loss)}};
  if (report.val_loss) {
    line["val_loss"] = finite(report.step, "val_loss", *report.val_loss);
    line["val_share"] = report.val_share;
  }
  if (report.val_accuracy) line["val_accuracy"] = *report.val_accuracy;
  if (report.sampled_val_loss) {
    line["sampled_val_loss"] = finite(report.step, "sampled_val_loss", *report.sampled_val_loss);
    line["sampled_val_share"] = report.sampled_val_share;
  }
  append(line.dump());
  history_.on_eval(report, best);
}

void MetricsFile::on_sync() { file_->sync(); }

void MetricsFile::on_sample(std::int64_t step, const std::string& text) {
  append(ordered_json{{"kind", "sample"}, {"step", step}, {"text", text}}.dump());
  history_.on_sample(step, text);
}

void MetricsFile::on_layers(std::int64_t step, const std::vector<LayerReport>& layers) {
  ordered_json line{{"kind", "layers"}, {"step", step}};
  for (const LayerReport& layer : layers)
    line[layer.layer] = {finite(step, "the norm of a layer", layer.norm),
                         finite(step, "the update of a layer", layer.update)};
  append(line.dump());
  history_.on_layers(step, layers);
}

void MetricsFile::on_remark(const Remark& remark) {
  ordered_json line{{"kind", to_string(remark.kind)}, {"step", remark.step}, {"text", remark.text}};
  if (remark.kind == Remark::Kind::end) line["elapsed_seconds"] = measured_time(remark.elapsed_seconds);
  append(line.dump());
  history_.on_remark(remark);
}

void MetricsFile::append(const std::string& line) { file_->write_all(text_bytes(line + "\n")); }

}  // namespace maki
