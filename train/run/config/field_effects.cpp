#include "train/run/config/field_effects.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <iterator>

#include "autograd/core/check.h"
#include "data/dataset/token_shards.h"
#include "data/io/file.h"

namespace maki {
namespace {

bool holds(const Config& config, const Condition& condition) {
  const std::string value = value_text(config, condition.needs);
  const bool is_unknown = value.empty() && condition.needs == kCorpus;
  return is_unknown || condition.allows(value);
}

bool is_off(const Config& config, const Field& field) {
  return field.off && value_text(config, field.name) == *field.off;
}

void require(const Config& config, const Field& field, const Condition& condition) {
  if (holds(config, condition)) return;
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("empty") : text; };
  std::vector<std::string> needed;
  std::ranges::transform(condition.values, std::back_inserter(needed), shown);
  const bool none_given = condition.except && needed.front() == "[]";
  check(!none_given, "{0}: has an effect only with `{1}`; add it, or omit `{0}`", field.name, condition.needs);
  fail("{0}: has an effect only if {1} is {2}{3}; it is {4}; omit `{0}`, or change {1}", field.name, condition.needs,
       condition.except ? "not " : "", fmt::join(needed, " or "), shown(value_text(config, condition.needs)));
}

// The phases that the file of a planned or resumed run records replace the schedule from the first of them on.
void require_no_phases(const Config& config, std::span<const std::string> given) {
  for (const char* const name : {"learning_rate", "min_lr", "warmup_steps", "lr_decay_steps"}) {
    check(config.phases.empty() || std::ranges::find(given, name) == given.end(),
          "{0}: the configuration contains phases, which fix the learning rate; omit `{0}`, or remove phases from the "
          "file",
          name);
  }
}

}  // namespace

void require_effect(const Config& config, std::span<const std::string> given) {
  require_no_phases(config, given);
  for (const Field& field : fields()) {
    if (std::ranges::find(given, field.name) == given.end() || is_off(config, field)) continue;
    for (const Condition& condition : field.conditions) require(config, field, condition);
  }
}

void require_effective_values(const Config& config) {
  for (const Field& field : fields()) {
    if (is_off(config, field)) continue;
    for (const Condition& condition : field.conditions) {
      if (condition.always) require(config, field, condition);
    }
  }
}

std::string value_text(const Config& config, std::string_view name) {
  return name == kCorpus ? corpus_kind(config) : option_text(config, find_field(name));
}

bool has_effect(const Config& config, std::string_view name) {
  return std::ranges::all_of(find_field(name).conditions,
                             [&](const Condition& condition) { return holds(config, condition); });
}

std::string corpus_kind(const Config& config) {
  if (config.corpus.empty()) return "";
  const std::string& first = config.corpus.front();
  if (first.starts_with('@')) return "a built-in text";
  if (token_file_paths(config.corpus)) return "tokens";
  if (std::ranges::any_of(config.corpus, [](const std::string& path) { return is_directory(path); }))
    return "a directory";
  std::error_code ignored;
  return first == "-" || std::filesystem::exists(first, ignored) ? "a file" : "";
}

}  // namespace maki
