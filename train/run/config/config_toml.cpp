// The configuration as TOML: config.toml, the files that --config reads, and the canonical form that a checkpoint
// stores.
#include <algorithm>
#include <fmt/ranges.h>
#include <optional>
#include <sstream>
#include <toml++/toml.h>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "train/run/config/config.h"

namespace maki {
namespace {

// A value as it is shown in a message.
std::string display_text(const toml::node& node) {
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a table";
  std::ostringstream out;
  out << toml::toml_formatter(node);
  return truncate_for_message(out.str());
}

// A TOML value as the text that the option of the field would have. Throws if its type is not that of the field.
std::string toml_text(const Field& field, const toml::node& node) {
  const bool wants_string = field.is_text();
  if (const auto* string = node.as_string(); string != nullptr && wants_string) return string->get();
  if (const auto* flag = node.as_boolean(); flag != nullptr && field.is_boolean())
    return flag->get() ? "true" : "false";
  const bool wants_number = !wants_string && !field.is_boolean();  // lists are read by string_list()
  if (const auto* integer = node.as_integer(); integer != nullptr && wants_number)
    return fmt::format("{}", integer->get());
  if (const auto* real = node.as_floating_point(); real != nullptr && wants_number) {
    const bool wants_whole = std::holds_alternative<std::int64_t Config::*>(field.member);
    check(!wants_whole, "{}: must be a whole number; got {}", field.name, display_text(node));
    return fmt::format("{}", real->get());
  }
  const char* const type = wants_string ? "a string in quotes" : field.is_boolean() ? "true or false" : "a number";
  fail("{}: must be {}; got {}", field.name, type, display_text(node));
}

std::vector<std::string> string_list(std::string_view name, const toml::node& node) {
  std::vector<std::string> entries;
  const toml::array* const list = node.as_array();
  check(list != nullptr, "{}: must be a list of strings; got {}", name, display_text(node));
  for (const toml::node& entry : *list) {
    check(entry.is_string(), "{}: must be a list of strings; got the entry {}", name, display_text(entry));
    entries.push_back(entry.as_string()->get());
  }
  return entries;
}

// A dotted key nests tables, and toml++ destroys nested tables recursively, which takes about 300 bytes of stack for
// each dot. Only a parser can tell which dots belong to keys, and the keys of tables inside arrays add up, so all dots
// of a text are counted before it is parsed. So many take 600 KB of the usual 8 MB.
constexpr std::int64_t kMaxDots = 2048;

std::int64_t count_dots(std::string_view text) { return std::ranges::count(text, '.'); }

// Control characters are written as escapes, in one line: a string of several lines loses a newline at its beginning
// when it is read.
std::string quoted(const std::string& text) {
  constexpr auto kEscapes = toml::toml_formatter::default_flags & ~toml::format_flags::allow_multi_line_strings &
                            ~toml::format_flags::allow_literal_strings;
  const bool controls = std::ranges::any_of(text, [](unsigned char each) { return each < 0x20 || each == 0x7F; });
  std::ostringstream out;
  out << toml::toml_formatter(toml::table{{"s", text}}, controls ? kEscapes : toml::toml_formatter::default_flags);
  const std::string line = out.str();
  return line.substr(line.find('=') + 2);
}

// The shortest text that reads back to the same number.
std::string number_text(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

constexpr const char* kPhaseKeys[] = {"start", "end", "learning_rate", "min_lr", "warmup_steps"};

// The keys learning_rate, min_lr and warmup_steps of a phase are named after the fields that they replace; the same
// limits apply.
Phase read_phase(const toml::table& table) {
  Config values;
  Phase phase;
  for (const auto& [key, node] : table) {
    const std::string_view word = key.str();
    if (word == "start" || word == "end") {
      const toml::value<std::int64_t>* const step = node.as_integer();
      check(step != nullptr, "{}: must be a whole number; got {}", word, display_text(node));
      (word == "start" ? phase.start : phase.end) = parse_integer(word, fmt::format("{}", step->get()), 0, kMaxCount);
      continue;
    }
    check(std::ranges::find(kPhaseKeys, word) != std::end(kPhaseKeys), "phases: unknown key {}; the keys are {}",
          truncate_for_message(word), fmt::join(kPhaseKeys, ", "));
    const Field& field = find_field(word);
    set_field(values, field, toml_text(field, node));
  }
  for (const char* const key : kPhaseKeys) {
    check(table.contains(key), "phases: every phase must have the keys {}; got one without {}",
          fmt::join(kPhaseKeys, ", "), key);
  }
  phase.learning_rate = values.learning_rate;
  phase.min_lr = values.min_lr;
  phase.warmup_steps = values.warmup_steps;
  return phase;
}

std::vector<Phase> read_phases(const toml::node& node) {
  const toml::array* const list = node.as_array();
  check(list != nullptr, "phases: must be a list of tables; got {}", display_text(node));
  std::vector<Phase> phases;
  for (const toml::node& entry : *list) {
    check(entry.is_table(), "phases: must be a list of tables; got the entry {}", display_text(entry));
    phases.push_back(read_phase(*entry.as_table()));
  }
  return phases;
}

// Texts that a run records, in the order in which they are written.
constexpr std::pair<std::string_view, std::string Config::*> kRecorded[] = {
    {"init_from", &Config::init_from}, {"taught_by", &Config::taught_by}, {"arithmetic", &Config::arithmetic}};

// The lines of the fields that are written only if they are set.
std::string optional_lines(const Config& config) {
  std::string text;
  for (const auto& [key, member] : kRecorded) {
    if (!(config.*member).empty()) text += fmt::format("{} = {}\n", key, quoted(config.*member));
  }
  if (!config.phases.empty()) text += fmt::format("phases = {}\n", phases_text(config));
  return text;
}

std::string quoted_list(const std::vector<std::string>& entries) {
  std::vector<std::string> texts;
  for (const std::string& entry : entries) texts.push_back(quoted(entry));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

toml::table parse(std::string_view text, const std::string& name) {
  check(text.size() <= kMaxConfigBytes, "{}: must have at most {} bytes; got {}", name, kMaxConfigBytes, text.size());
  check(count_dots(text) <= kMaxDots,
        "{}: must have at most {} dots; got {}; shorten its list of the corpus to the directory that holds the files",
        name, kMaxDots, count_dots(text));
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail("{}: line {}: {}", name, error.source().begin.line, truncate_for_message(error.description(), 400));
  }
}

void apply_entry(Config& config, std::string_view key, const toml::node& node) {
  if (key == "corpus") {
    config.corpus = string_list(key, node);
  } else if (key == "phases") {
    config.phases = read_phases(node);
  } else if (const auto* const recorded =
                 std::ranges::find(kRecorded, key, &std::pair<std::string_view, std::string Config::*>::first);
             recorded != std::end(kRecorded)) {
    check(node.is_string(), "{}: must be a string in quotes; got {}", key, display_text(node));
    config.*recorded->second = node.as_string()->get();
  } else if (const Field& field = find_field(key); field.is_list()) {
    set_list(config, field, string_list(key, node));
  } else {
    set_field(config, field, toml_text(field, node));
  }
}

void apply_table(Config& config, const toml::table& table, const std::string& name) {
  for (const auto& [key, node] : table) {
    try {
      apply_entry(config, key.str(), node);
    } catch (const Error& error) {
      fail("{}: line {}: {}", name, node.source().begin.line, error.what());
    }
  }
}

// Removes the key `schema` from the table of a checkpoint's configuration.
void take_schema(toml::table& table) {
  const std::optional<std::int64_t> schema = table["schema"].value_exact<std::int64_t>();
  check(schema.has_value(), "its configuration: must have a schema, which is a whole number");
  check<CheckpointError>(*schema == kConfigSchema,
                         "its configuration has schema {}, but this version of maki reads schema {}; use the version "
                         "that wrote it",
                         *schema, kConfigSchema);
  table.erase("schema");
}

}  // namespace

std::string phases_text(const Config& config) {
  std::vector<std::string> list;
  for (const Phase& p : config.phases) {
    list.push_back(fmt::format("{{start = {}, end = {}, learning_rate = {}, min_lr = {}, warmup_steps = {}}}", p.start,
                               p.end, number_text(p.learning_rate), number_text(p.min_lr), p.warmup_steps));
  }
  return fmt::format("[{}]", fmt::join(list, ", "));
}

std::string field_text(const Config& config, const Field& field) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return quoted(value);
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          return quoted_list(value);
        } else if constexpr (std::is_same_v<Value, double>) {
          return number_text(value);
        } else {
          return fmt::format("{}", value);
        }
      },
      field.value(config));
}

std::string option_text(const Config& config, const Field& field) {
  const std::string text = field_text(config, field);
  return field.is_text() ? text.substr(1, text.size() - 2) : text;
}

std::vector<std::string> apply_toml(Config& config, std::string_view text, const std::string& name) {
  const toml::table table = parse(text, name);
  apply_table(config, table, name);
  std::vector<std::string> keys;
  for (const auto& [key, node] : table) keys.emplace_back(key.str());
  return keys;
}

std::string to_toml(const Config& config) {
  check_paths(config);
  std::string text =
      "# The configuration of a maki run. Training fields are fixed; run fields may change on resume.\n\n";
  text += fmt::format("corpus = {}\n", quoted_list(config.corpus));
  for (const Field& field : fields()) {
    text += fmt::format("{} = {}  # {}{}\n", field.name, field_text(config, field),
                        field.kind == FieldClass::run ? "run: " : "", field.help);
  }
  text += optional_lines(config);
  check(text.size() <= kMaxConfigBytes && count_dots(text) <= kMaxDots,
        "corpus: the paths of {} sources are too long for config.toml, which must have at most {} bytes and {} dots; "
        "pass the directory that holds them",
        config.corpus.size(), kMaxConfigBytes, kMaxDots);
  return text;
}

std::string training_toml(const Config& config) {
  std::string text = fmt::format("schema = {}\n", kConfigSchema);
  for (const Field& field : fields()) {
    if (field.is_training()) text += fmt::format("{} = {}\n", field.name, field_text(config, field));
  }
  return text + optional_lines(config);
}

Config read_training_toml(std::string_view text) {
  const std::string name = "its configuration";
  toml::table table = parse(text, name);
  take_schema(table);
  Config config;
  apply_table(config, table, name);
  check(training_toml(config) == text, "its configuration is not in the canonical form of schema {}", kConfigSchema);
  return config;
}

}  // namespace maki
