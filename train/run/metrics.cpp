#include "train/run/metrics.h"

#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/stat.h>

#include "data/io/error.h"
#include "data/io/file.h"

namespace maki {

using nlohmann::ordered_json;

namespace {

// nullopt unless the line is complete.
std::optional<CountingReport> counting_line(const MetricsLine& line) {
  const auto order = line.number("order"), val_loss = line.number("val_loss"),
             per_character = line.number("nats_per_character"), train_share = line.number("train_share"),
             val_share = line.number("val_share");
  if (!order || *order < 1 || *order > 100 || !val_loss || !per_character || !train_share || !val_share)
    return std::nullopt;
  return CountingReport{line.step, static_cast<int>(*order), *val_loss, *per_character, *train_share, *val_share};
}

// Whether writing to the file writes to nothing else: to no target of a link, and to no file of another name.
bool is_alone(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, std::int64_t step, FileSystem& fs) {
  const bool there = file_exists(path);
  if (there) {
    const std::string before = read_file_limited(fs, path, kMaxMetricsBytes), kept = keep(before, step);
    if (kept != before || !is_alone(path)) replace_file_atomically(fs, path, {text_bytes(kept)});
  }
  file_.emplace(fs, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
  if (!there) sync_directory(fs, parent_directory(path));
}

// Returns the lines up to `step`, and records what they contain.
std::string MetricsFile::keep(std::string_view text, std::int64_t step) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view words = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), words.size() + 1));
    const std::optional<MetricsLine> line = read_metrics_line(words);
    if (!line || line->step > step) continue;
    kept.append(words) += '\n';
    record(*line);
  }
  return kept;
}

void MetricsFile::record(const MetricsLine& line) {
  elapsed_ = line.number("elapsed_seconds").value_or(elapsed_);
  if (line.kind == "sample") last_sample_ = line.step;
  if (line.kind == "counting") counting_ = counting_line(line);
  if (line.kind != "eval") return;
  last_eval_ = line.step;
  const bool sampled = line.number("sampled_val_loss").has_value();
  const auto loss = line.number(sampled ? "sampled_val_loss" : "val_loss"),
             share = line.number(sampled ? "sampled_val_share" : "val_share");
  if (loss) validations_.push_back({line.step, *loss, share.value_or(0), line.number("train_loss").value_or(0)});
}

// JSON cannot express a number that is not finite: nlohmann-json would write null.
double MetricsFile::finite(std::int64_t step, const char* name, double value) {
  check<DivergedError>(std::isfinite(value), "step {}: {} is {}; the run has diverged", step, name, value);
  return value;
}

// Times have no influence on a run, so a clock that does not advance or jumps must not count as divergence.
double MetricsFile::measured_time(double value) { return std::isfinite(value) ? value : 0; }

void MetricsFile::on_counting(const CountingReport& report) {
  if (counting_) return;
  append(ordered_json{{"kind", "counting"},
                      {"step", report.step},
                      {"order", report.order},
                      {"val_loss", finite(report.step, "val_loss", report.val_loss)},
                      {"nats_per_character", finite(report.step, "nats_per_character", report.nats_per_character)},
                      {"train_share", report.train_share},
                      {"val_share", report.val_share}}
             .dump());
  counting_ = report;
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
}

void MetricsFile::on_eval(const EvalReport& report, bool /*best*/) {
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
  last_eval_ = report.step;
  if (report.val_loss) validations_.push_back(report.point());
}

void MetricsFile::on_sync() { file_->sync(); }

void MetricsFile::on_sample(std::int64_t step, const std::string& text) {
  append(ordered_json{{"kind", "sample"}, {"step", step}, {"text", text}}.dump());
  last_sample_ = step;
}

void MetricsFile::append(const std::string& line) { file_->write_all(text_bytes(line + "\n")); }

}  // namespace maki
