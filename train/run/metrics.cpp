#include "train/run/metrics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "train/config/error.h"

namespace maki {

using nlohmann::ordered_json;

namespace {

std::optional<double> number(const ordered_json& object, const std::string& key) {
  if (!object.contains(key) || !object[key].is_number()) return std::nullopt;
  return object[key].get<double>();
}

// nullopt unless the line is complete.
std::optional<CountingReport> counting_line(const ordered_json& object, std::int64_t step) {
  const auto order = number(object, "order"), val_loss = number(object, "val_loss"),
             per_character = number(object, "nats_per_character"), train_share = number(object, "train_share"),
             val_share = number(object, "val_share");
  if (!order || *order < 1 || *order > 100 || !val_loss || !per_character || !train_share || !val_share)
    return std::nullopt;
  return CountingReport{step, static_cast<int>(*order), *val_loss, *per_character, *train_share, *val_share};
}

}  // namespace

MetricsFile::MetricsFile(std::string path, std::int64_t step, FileSystem& fs) : path_(std::move(path)), fs_(fs) {
  const bool there = file_exists(path_);
  if (there) {
    const std::string before = read_file_limited(fs_, path_), kept = keep(before, step);
    if (kept != before) replace_file_atomically(fs_, path_, {text_bytes(kept)});
  }
  descriptor_ = fs_.open(path_, O_WRONLY | O_CREAT | O_APPEND, 0644);
  check<CheckpointError>(descriptor_ >= 0, "{}: cannot be opened: {}", path_, std::strerror(errno));
  if (there) return;
  try {
    sync_directory(fs_, parent_directory(path_));
  } catch (...) {
    fs_.close(descriptor_);
    throw;
  }
}

MetricsFile::~MetricsFile() { fs_.close(descriptor_); }

// Returns the lines up to `step`, and records what they contain.
std::string MetricsFile::keep(const std::string& text, std::int64_t step) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const ordered_json object = ordered_json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) continue;
    const auto at = object["step"].get<std::int64_t>();
    if (at < 0 || at > step) continue;
    kept += line + "\n";
    if (object.contains("elapsed_seconds") && object["elapsed_seconds"].is_number())
      elapsed_ = object["elapsed_seconds"].get<double>();
    const std::string kind =
        object.contains("kind") && object["kind"].is_string() ? object["kind"].get<std::string>() : "";
    if (kind == "sample") last_sample_ = at;
    if (kind == "counting") counting_ = counting_line(object, at);
    if (kind != "eval") continue;
    last_eval_ = at;
    const std::string sampled = object.contains("sampled_val_loss") ? "sampled_" : "";
    if (const auto loss = number(object, sampled + "val_loss")) {
      validations_.push_back(
          {at, *loss, number(object, sampled + "val_share").value_or(0), number(object, "train_loss").value_or(0)});
    }
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

void MetricsFile::on_sync() {
  const bool synced = fs_.fsync(descriptor_) == 0;  // before the arguments below are evaluated, which read errno
  check<CheckpointError>(synced, "{}: fsync failed: {}", path_, std::strerror(errno));
}

void MetricsFile::on_sample(std::int64_t step, const std::string& text) {
  append(ordered_json{{"kind", "sample"}, {"step", step}, {"text", text}}.dump());
  last_sample_ = step;
}

void MetricsFile::append(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = fs_.write(descriptor_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    check<CheckpointError>(n > 0, "{}: cannot be written: {}", path_, std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace maki
