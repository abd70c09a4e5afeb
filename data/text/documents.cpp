#include "data/text/documents.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/text/error.h"
#include "data/text/printable.h"

namespace maki {
namespace {

using nlohmann::json;

// Takes a string out of an object without keeping anything else of it.
class FieldReader final : public nlohmann::json_sax<json> {
 public:
  explicit FieldReader(const std::string& field) : field_(field) {}

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return value("a number"); }
  bool number_float(number_float_t, const string_t&) override { return value("a number"); }
  bool binary(binary_t&) override { return value("binary data"); }
  bool string(string_t& text) override {
    if (!wanted_) return value("a string");
    wanted_ = false;
    check<CorpusError>(!found, "has the field {} twice", truncate_for_message(field_));
    found = std::move(text);
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ > 0) value("an object");
    return descend();
  }
  bool start_array(std::size_t) override {
    value("an array");
    return descend();
  }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    wanted_ = name == field_;
    constexpr std::size_t kMostNames = 8;  // enough for a message; chosen without a measurement
    if (names.size() < kMostNames) names.push_back(truncate_for_message(name));
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    fail<CorpusError>("is not JSON: byte {} of the line is unexpected", at);
  }

  std::optional<std::string> found;
  std::vector<std::string> names;  // some fields of the object

 private:
  bool value(const char* what) {
    check<CorpusError>(depth_ > 0, "must be an object; it is {}", what);
    check<CorpusError>(!wanted_, "must have a string in the field {}; it has {}", truncate_for_message(field_), what);
    return true;
  }
  bool descend() {
    constexpr std::int64_t kMaxDepth = 1000;  // far beyond real data; chosen without a measurement
    check<CorpusError>(++depth_ <= kMaxDepth, "is nested more than {} times", kMaxDepth);
    return true;
  }

  const std::string& field_;
  std::int64_t depth_ = 0;
  bool wanted_ = false;
};

std::string_view without_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::string json_text_field(std::string_view line, const std::string& field) {
  FieldReader reader(field);
  json::sax_parse(line.begin(), line.end(), &reader);
  check<CorpusError>(reader.found.has_value(), "has no field {}; it has {}; name another with --json-field",
                     truncate_for_message(field),
                     reader.names.empty() ? "none" : fmt::format("{}", fmt::join(reader.names, ", ")));
  return std::move(*reader.found);
}

void DocumentOptions::check_valid() const {
  check(separator.empty() || json_field.empty(),
        "json_field: every line of JSON is a document, so there are no lines between them; omit --document-separator");
  check(separator.find_first_of("\r\n") == std::string::npos,
        "document_separator: must be one line without its end; got {}",
        truncate_for_message(escape_unprintable(separator)));
}

DocumentReader::DocumentReader(const DocumentOptions& options, std::string name, TextSink text,
                               std::function<void()> end)
    : options_(options), name_(std::move(name)), text_(std::move(text)), end_(std::move(end)) {}

void DocumentReader::push(std::string_view block) {
  if (options_.separator.empty() && options_.json_field.empty()) {
    text_(block);
  } else {
    push_lines(block);
  }
}

void DocumentReader::push_lines(std::string_view block) {
  while (!block.empty()) {
    const std::size_t end = block.find('\n');
    const std::string_view line = block.substr(0, end == std::string_view::npos ? end : end + 1);
    block.remove_prefix(line.size());
    const bool complete = line.ends_with('\n');
    // A line that is longer than the separator and its end need not be held until it is complete.
    const bool is_text =
        inside_ || (options_.json_field.empty() && pending_.size() + line.size() > options_.separator.size() + 2);
    if (is_text) {
      text_(std::exchange(pending_, {}));
      text_(line);
      inside_ = !complete;
    } else if (!complete) {
      pending_ += line;
    } else if (pending_.empty()) {
      take_line(line);
    } else {
      take_line(std::exchange(pending_, {}) += line);
    }
  }
}

void DocumentReader::take_line(std::string_view line) {
  ++lines_;
  const std::string_view words = without_end(line);
  if (options_.json_field.empty()) {
    if (words == options_.separator) return end_();
    return text_(line);
  }
  if (words.find_first_not_of(" \t") == std::string_view::npos) return;
  try {
    text_(json_text_field(words, options_.json_field));
  } catch (const CorpusError& error) {
    fail<CorpusError>("{}: line {} {}", name_, lines_, error.what());
  }
  end_();
}

void DocumentReader::finish() {
  if (!pending_.empty()) take_line(std::exchange(pending_, {}));
  if (options_.json_field.empty()) end_();
}

}  // namespace maki
