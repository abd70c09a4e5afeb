#include "train/run/metrics_line.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace maki {
namespace {

constexpr std::string_view kNumbers[] = {"elapsed_seconds",
                                         "train_loss",
                                         "val_loss",
                                         "val_share",
                                         "sampled_val_loss",
                                         "sampled_val_share",
                                         "nats_per_character",
                                         "train_share",
                                         "order",
                                         "loss",
                                         "learning_rate",
                                         "grad_norm",
                                         "tokens",
                                         "tokens_per_second",
                                         "val_accuracy"};

class LineReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool number_integer(number_integer_t n) override { return whole(n, static_cast<double>(n)); }
  bool number_unsigned(number_unsigned_t n) override {
    constexpr auto kMaxWhole = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return whole(n <= kMaxWhole ? static_cast<std::int64_t>(n) : -1, static_cast<double>(n));
  }
  bool number_float(number_float_t x, const string_t&) override { return number(x); }
  bool string(string_t& text) override {
    value();
    if (depth_ == 1 && name_ == "kind") {
      line_.kind = std::move(text);
    } else if (depth_ == 1 && name_ == "text") {
      line_.text = std::move(text);
    }
    return true;
  }
  bool start_object(std::size_t) override {
    is_object_ = is_object_ || depth_ == 0;
    return descend();
  }
  bool start_array(std::size_t) override {
    descend();
    in_list_ = depth_ == 2;
    if (in_list_) line_.lists.push_back({name_, {}});
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override {
    in_list_ = in_list_ && depth_ != 2;
    return --depth_ >= 0;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) name_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  std::optional<MetricsLine> result() {
    if (!is_object_ || step_ < 0) return std::nullopt;
    line_.step = step_;
    return std::move(line_);
  }

 private:
  // Forgets what an earlier field of this name had.
  bool value() {
    if (depth_ != 1) return true;
    if (name_ == "step") step_ = -1;
    if (name_ == "kind") line_.kind.clear();
    if (name_ == "text") line_.text.clear();
    if (const auto known = line_.numbers.find(name_); known != line_.numbers.end()) line_.numbers.erase(known);
    return true;
  }
  bool number(double x) {
    value();
    if (depth_ == 1 && std::ranges::find(kNumbers, name_) != std::end(kNumbers)) line_.numbers[name_] = x;
    if (depth_ == 2 && in_list_) line_.lists.back().second.push_back(x);
    return true;
  }
  bool whole(std::int64_t n, double x) {
    number(x);
    if (depth_ == 1 && name_ == "step") step_ = n;
    return true;
  }
  bool descend() {
    value();
    ++depth_;
    return true;
  }

  MetricsLine line_;
  std::string name_;  // of the field that is read
  std::int64_t depth_ = 0, step_ = -1;
  bool is_object_ = false, in_list_ = false;  // in_list_: in an array that is the value of a field
};

}  // namespace

std::optional<double> MetricsLine::number(std::string_view name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<MetricsLine> read_metrics_line(std::string_view line) {
  LineReader reader;
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &reader)) return std::nullopt;
  return reader.result();
}

}  // namespace maki
