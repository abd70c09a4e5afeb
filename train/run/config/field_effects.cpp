#include "train/run/config/field_effects.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <optional>

#include "autograd/core/check.h"
#include "data/dataset/token_shards.h"
#include "data/io/file.h"
#include "train/run/config/tasks.h"

namespace maki {
namespace {

using Values = std::vector<std::string>;

// A field that has an effect only if the field `needs` has one of these values, or with `except` none of them.
struct Dependence {
  const char *field, *needs;
  Values values;
  bool except = false;
  /// The value of the field that asks for nothing, and is therefore accepted.
  std::optional<std::string> off = std::nullopt;
  /// Any other value but the default asks for something, wherever it comes from.
  bool always = false;
};

// In the place of a field: the kind of the corpus.
constexpr std::string_view kCorpus = "corpus";

// The value of a field, as the text of its option.
std::string value_text(const Config& config, std::string_view name) {
  if (name == kCorpus) return corpus_kind(config);
  std::string text = field_text(config, find_field(name));
  if (text.starts_with('"') || text.starts_with('\'')) text = text.substr(1, text.size() - 2);
  return text;
}

// Parts that only some models have.
std::vector<Dependence> model_dependences() {
  return {
      {"n_kv_head", "model", {"gpt", "encoder"}, false, "0", true},
      {"qk_norm", "model", {"gpt", "linear", "encoder"}, false, "false", true},
      {"conv_width", "model", {"gpt", "linear"}, false, "0", true},
      {"attention", "model", {"linear"}, false, "softmax"},
      {"memory", "model", {"transformer-xl"}, false, "0", true},
      {"recompute_blocks", "model", {"gpt", "linear", "encoder"}, false, "false", true},
  };
}

// What only some tasks do, or only some corpora need.
std::vector<Dependence> data_dependences() {
  const Values running = {"next_token", "masked"}, files = {"a file", "a directory"};
  std::vector<Dependence> list = {
      {"share_vocabulary", "task", {"translate"}, false, "false", true},
      {"ngram_prior", "task", {"next_token"}, false, "0", true},
      {"respect_documents", "task", {"next_token"}, false, "false", true},
      {"counting", "task", {"next_token"}, false, "false"},
      {"sample_interval", "task", {"next_token", "translate"}, false, "0"},
      {"tie_weights", "task", {"classify"}, true, "true"},
      {"documents", "document_separator", {""}, false, "false"},
      {"documents", "json_field", {""}, false, "false"},
      {"invalid_utf8", "corpus", files, false, "error"},
      {"encoding", "corpus", files, false, ""},
      {"include", "corpus", {"a directory"}},
      {"exclude", "corpus", {"a directory"}},
  };
  for (const auto& [name, off] : {std::pair{"documents", "false"}, {"document_separator", ""}, {"json_field", ""}}) {
    list.push_back({name, "task", running, false, off, true});
    list.push_back({name, "corpus", files, false, off});
  }
  return list;
}

const std::vector<Dependence>& dependences() {
  static const std::vector<Dependence> list = [] {
    std::vector<Dependence> all = {
        {"beta1", "optimizer", {"adam", "adamw", "muon"}},
        {"beta2", "optimizer", {"adam", "adamw", "muon"}},
        {"momentum", "optimizer", {"sgd", "muon"}},
        {"nesterov", "optimizer", {"sgd"}},
        {"muon_lr", "optimizer", {"muon"}},
        {"min_lr", "schedule", {"constant"}, true},
        {"lr_decay_steps", "schedule", {"cosine", "linear", "wsd"}},
        {"vocab_size", "tokenizer", {"bpe"}},
        {"position_base", "positions", {"sinusoidal", "rotary"}},
        {"lora_alpha", "lora_rank", {"0"}, true},
        {"lora_targets", "lora_rank", {"0"}, true},
        {"ngram_rows", "ngram_orders", {"none"}, true},
        {"ngram_dropout", "ngram_orders", {"none"}, true},
        {"ngram_lr_factor", "ngram_orders", {"none"}, true},
        {"patience", "early_stop", {"true"}},
    };
    for (const auto& more : {model_dependences(), data_dependences()}) all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return list;
}

void require_effect(const Config& config, const Dependence& dependence) {
  const std::string value = value_text(config, dependence.needs);
  if (value.empty() && dependence.needs == kCorpus) return;  // it is not known
  const bool listed = std::ranges::find(dependence.values, value) != dependence.values.end();
  if (listed != dependence.except) return;
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("empty") : text; };
  Values needed;
  std::ranges::transform(dependence.values, std::back_inserter(needed), shown);
  fail("{0}: has an effect only if {1} is {2}{3}; it is {4}; omit {5}, or change {1}", dependence.field,
       dependence.needs, dependence.except ? "not " : "", fmt::join(needed, " or "), shown(value),
       find_field(dependence.field).option());
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
    if (!dependence.off || value_text(config, dependence.field) != *dependence.off) require_effect(config, dependence);
  }
}

void require_effective_values(const Config& config) {
  const Config defaults;
  for (const Dependence& dependence : dependences()) {
    if (!dependence.always || value_text(config, dependence.field) == value_text(defaults, dependence.field)) continue;
    require_effect(config, dependence);
  }
}

std::string corpus_kind(const Config& config) {
  if (config.corpus.empty()) return "";
  const std::string& first = config.corpus.front();
  if (first.starts_with('@')) return "a built-in text";
  if (token_file_paths(config.corpus)) return "tokens";
  if (std::ranges::any_of(config.corpus, is_directory)) return "a directory";
  std::error_code ignored;
  return first == "-" || std::filesystem::exists(first, ignored) ? "a file" : "";
}

}  // namespace maki
