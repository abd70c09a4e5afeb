// Which parameters of a model are trained: the fields freeze, lora_rank, lora_alpha and lora_targets. No model knows
// them: make_model() (train/run/config/models.h) applies them.
#pragma once

#include <string>
#include <vector>

#include "nn/low_rank.h"
#include "train/run/config/config.h"

namespace maki {

/// The adapters that a configuration asks for.
class AdapterChoice {
 public:
  explicit AdapterChoice(const Config& config);
  AdapterChoice(const AdapterChoice&) = delete;
  AdapterChoice& operator=(const AdapterChoice&) = delete;

  bool any() const { return options_.rank > 0; }
  /// For Scope::with_adapters(). Refers to this object, which must exist until the model is created. Requires: any().
  const LowRank& options() const { return options_; }
  /// After the model was created: throws Error unless every pattern of lora_targets matched the weight of a layer.
  /// Never without adapters.
  void require_matches() const;

 private:
  std::vector<std::string> targets_, weights_;  // patterns; weights of all layers that can be adapted
  LowRank options_;
};

/// By which the output of an adapter is multiplied: lora_alpha / lora_rank, or 1 if lora_alpha is 0. Requires: the
/// configuration has adapters.
double adapter_scale(const Config& config);
/// Freezes the parameters that match a pattern of `freeze` and, if there are adapters, all others than theirs. Throws
/// Error if a pattern matches no parameter, naming the most similar one, or if with `freeze` nothing is left to train
/// (all are frozen then).
void freeze_parameters(const Config& config, ParameterStore& store);
/// For a new run: throws Error if there are adapters and a pattern of `freeze` matches no parameter of them, so that it
/// has no effect.
void require_freeze_has_effect(const Config& config, const ParameterStore& store);
/// The configuration of the same model without adapters.
Config without_adapters(Config config);

/// The name that differs from a glob pattern in the fewest bytes, the first of equal ones; a set in brackets is taken
/// for the characters with which it is written. Requires: there is a name.
const std::string& most_similar(std::string_view pattern, const std::vector<std::string>& names);

}  // namespace maki
