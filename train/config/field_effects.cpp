#include "train/config/field_effects.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "autograd/core/check.h"

namespace maki {
namespace {

// A field that has an effect only if the field `needs` has one of these values; none: another one than Field::absent.
struct Dependence {
  const char *field, *needs;
  std::vector<std::string> values;
};

const std::vector<Dependence>& dependences() {
  static const std::vector<Dependence> list = {
      {"beta1", "optimizer", {"adam", "adamw", "muon"}},
      {"beta2", "optimizer", {"adam", "adamw", "muon"}},
      {"momentum", "optimizer", {"sgd", "muon"}},
      {"nesterov", "optimizer", {"sgd"}},
      {"muon_lr", "optimizer", {"muon"}},
      {"vocab_size", "tokenizer", {"bpe"}},
      {"position_base", "positions", {"sinusoidal", "rotary"}},
      {"lora_alpha", "lora_rank", {}},
      {"lora_targets", "lora_rank", {}},
      {"ngram_rows", "ngram_orders", {}},
      {"ngram_dropout", "ngram_orders", {}},
      {"ngram_lr_factor", "ngram_orders", {}},
      {"patience", "early_stop", {"true"}},
  };
  return list;
}

// The value of a field, as the text of its option.
std::string value_text(const Config& config, const std::string& name) {
  std::string text = field_text(config, find_field(name));
  if (text.starts_with('"') || text.starts_with('\'')) text = text.substr(1, text.size() - 2);
  return text;
}

// The phases that the file of a planned or resumed run records replace the schedule from the first of them on.
void require_no_phases(const Config& config, std::span<const std::string> given) {
  for (const char* const name : {"learning_rate", "min_lr", "warmup_steps", "lr_decay_steps"}) {
    check(config.phases.empty() || std::ranges::find(given, name) == given.end(),
          "{}: the configuration contains phases, which fix the learning rate; omit {}, or remove phases from the file",
          name, find_field(name).option());
  }
}

}  // namespace

void require_effect(const Config& config, std::span<const std::string> given) {
  require_no_phases(config, given);
  for (const Dependence& dependence : dependences()) {
    if (std::ranges::find(given, dependence.field) == given.end()) continue;
    const std::string value = value_text(config, dependence.needs);
    const bool any = dependence.values.empty();
    const std::string& off = find_field(dependence.needs).absent;
    check(any ? value != off : std::ranges::find(dependence.values, value) != dependence.values.end(),
          "{0}: has an effect only if {1} is {2}; it is {3}; omit {4}, or change {1}", dependence.field,
          dependence.needs, any ? "not " + off : fmt::format("{}", fmt::join(dependence.values, " or ")), value,
          find_field(dependence.field).option());
  }
}

}  // namespace maki
