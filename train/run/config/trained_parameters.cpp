#include "train/run/config/trained_parameters.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <numeric>

#include "autograd/core/check.h"
#include "data/text/glob.h"

namespace maki {
namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches_glob(pattern, name); });
}

void require_each_matches(const char* field, const std::vector<std::string>& patterns,
                          const std::vector<std::string>& names, const char* what) {
  for (const std::string& pattern : patterns) {
    const bool any = std::ranges::any_of(names, [&](const std::string& name) { return matches_glob(pattern, name); });
    check(any, "{}: every pattern must match {}; got {}{}", field, what, truncate_for_message(pattern),
          names.empty() ? "" : "; the most similar name is " + most_similar(pattern, names));
  }
}

// The number of insertions, deletions and substitutions that make a name match a pattern, in which * costs nothing.
std::size_t distance(std::string_view pattern, std::string_view name) {
  std::vector<std::size_t> row(name.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : pattern) {
    std::size_t diagonal = row[0];
    if (c != '*') ++row[0];
    for (std::size_t i = 1; i < row.size(); ++i) {
      const std::size_t above = row[i];
      const bool same = c == '?' || c == name[i - 1];
      row[i] =
          c == '*' ? std::min(above, row[i - 1]) : std::min({diagonal + (same ? 0 : 1), above + 1, row[i - 1] + 1});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

const std::string& most_similar(std::string_view pattern, const std::vector<std::string>& names) {
  return *std::ranges::min_element(names, {}, [&](const std::string& name) { return distance(pattern, name); });
}

AdapterChoice::AdapterChoice(const Config& config)
    : targets_(config.lora_targets),
      options_{.rank = config.lora_rank,
               .scale = config.lora_rank > 0 ? adapter_scale(config) : 0,
               .wanted = [this](const std::string& weight) {
                 weights_.push_back(weight);
                 return targets_.empty() || matches_any(targets_, weight);
               }} {}

void AdapterChoice::require_matches() const {
  if (any()) require_each_matches("lora_targets", targets_, weights_, "the weight of a linear layer of a block");
}

double adapter_scale(const Config& config) {
  const auto rank = static_cast<double>(config.lora_rank);
  return config.lora_alpha > 0 ? config.lora_alpha / rank : 1;
}

void freeze_parameters(const Config& config, ParameterStore& store) {
  std::vector<std::string> names;
  for (const auto& parameter : store.parameters()) names.push_back(parameter->name());
  require_each_matches("freeze", config.freeze, names, "a parameter");
  const bool adapted = config.lora_rank > 0;
  bool any_trained = false;
  for (const auto& parameter : store.parameters()) {
    const bool frozen = matches_any(config.freeze, parameter->name()) || (adapted && !is_adapter(parameter->name()));
    if (frozen) store.freeze(*parameter);
    any_trained = any_trained || parameter->trainable();
  }
  check(any_trained || config.freeze.empty(),
        "freeze: the patterns match all parameters, so nothing would be trained; omit one of {}",
        fmt::join(config.freeze, ", "));
}

void require_freeze_has_effect(const Config& config, const ParameterStore& store) {
  if (config.lora_rank == 0) return;
  std::vector<std::string> names;
  for (const auto& parameter : store.parameters())
    if (is_adapter(parameter->name())) names.push_back(parameter->name());
  require_each_matches("freeze", config.freeze, names, "a parameter of an adapter, as `lora_rank` freezes all others");
}

Config without_adapters(Config config) {
  config.lora_rank = 0;
  config.lora_alpha = 0;
  config.lora_targets.clear();
  return config;
}

}  // namespace maki
