#include "data/text/documents.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/json_text.h"
#include "data/io/printable.h"
#include "data/io/utf8.h"

namespace maki {
namespace {

// With the range of long double, so that a number beyond that of double in a field that is not read does no harm.
using exact_json =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, long double>;

constexpr std::string_view kWriteObjects =
    "write one object in each line, as jq -c '.[]' does with those of a list, or omit `json_field`";

// Takes a string out of an object without keeping anything else of it.
class FieldReader final : public nlohmann::json_sax<exact_json> {
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
    constexpr std::size_t kMaxNames = 8;  // enough for a message
    if (names.size() < kMaxNames) names.push_back(truncate_for_message(name));
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;  // json.exception.out_of_range.406: a number overflows
    // What it says of the last token read is the user's text.
    const std::string_view what = error.what(), reason = what.substr(0, what.find("; last read:"));
    const bool surrogate = reason.find("surrogate") != std::string_view::npos;
    check<CorpusError>(
        !surrogate,
        "has half of a surrogate pair at byte {}, an escape such as \\ud83d alone, which is no character; "
        "replace it, for example with \\ufffd",
        at);
    check<CorpusError>(error.id != kOutOfRange, "has a number at byte {} that is too large to be read; shorten it", at);
    fail<CorpusError>("is not JSON: byte {} of the line is unexpected; {}", at, kWriteObjects);
  }

  std::optional<std::string> found;
  std::vector<std::string> names;  // some fields of the object

 private:
  bool value(const char* what) {
    check<CorpusError>(depth_ > 0, "must be an object; it is {}; {}", what, kWriteObjects);
    check<CorpusError>(!wanted_, "must have a string in the field {}; it has {}; name another with `json_field`",
                       truncate_for_message(field_), what);
    return true;
  }
  bool descend() {
    constexpr std::int64_t kMaxDepth = 1000;  // objects and lists in each other: far beyond real data
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

std::string_view without_blanks_at_end(std::string_view line) {
  return line.substr(0, line.find_last_not_of(" \t") + 1);
}

}  // namespace

std::string json_text_field(std::string_view line, const std::string& field) {
  FieldReader reader(field);
  read_json_text(line, reader);
  check<CorpusError>(reader.found.has_value(), "has no field {}; it has {}; name another with `json_field`",
                     truncate_for_message(field),
                     reader.names.empty() ? "none" : fmt::format("{}", fmt::join(reader.names, ", ")));
  return std::move(*reader.found);
}

void DocumentOptions::check_valid() const {
  check(separator.empty() || json_field.empty(),
        "json_field: every line of JSON is a document, so there are no lines between them; omit `document_separator`");
  check(separator.find_first_of("\r\n") == std::string::npos,
        "document_separator: must be one line without its end; got {}",
        truncate_for_message(escape_unprintable(separator)));
}

DocumentReader::DocumentReader(const DocumentOptions& options, std::string name, TextSink text,
                               std::function<void()> end)
    : options_(options), name_(std::move(name)), text_(std::move(text)), end_(std::move(end)) {
  const std::string_view visible = without_blanks_at_end(options.separator);
  separator_ = visible.empty() ? options.separator : visible;
}

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
    if (inside_) {
      text_(line);
      inside_ = !complete;
    } else if (complete && pending_.empty()) {
      take_line(line);
    } else if (pending_ += line; complete) {
      take_line(std::exchange(pending_, {}));
    } else if (options_.json_field.empty() && !may_separate(pending_)) {
      // Text need not be held until its line is complete.
      text_(std::exchange(pending_, {}));
      ++lines_;
      inside_ = true;
    }
  }
}

// Whether a line that begins like this may still be the separator.
bool DocumentReader::may_separate(std::string_view beginning) const {
  if (lines_ == 0 && kByteOrderMark.starts_with(beginning)) return true;
  const std::string_view words = lines_ == 0 ? without_byte_order_mark(beginning) : beginning;
  return separator_.starts_with(words.substr(0, separator_.size())) &&
         words.find_first_not_of(" \t\r", separator_.size()) == std::string_view::npos;
}

bool DocumentReader::is_separator(std::string_view words) const {
  if (lines_ == 1) words = without_byte_order_mark(words);
  return words == separator_ || without_blanks_at_end(words) == separator_;
}

void DocumentReader::take_line(std::string_view line) {
  ++lines_;
  const std::string_view words = without_end(line);
  if (options_.json_field.empty()) {
    if (!is_separator(words)) return text_(line);
    ++separators_;
    return end_();
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

void note_on_separators(const DocumentOptions& options, std::int64_t separators, std::vector<std::string>& notes) {
  if (options.separator.empty() || separators > 0) return;
  notes.push_back(fmt::format(
      "no line is the separator {}, so every file is one document; a separator must stand alone on its line",
      escape_unprintable(options.separator)));
}

}  // namespace maki
