#include "train/app/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>

#include "data/dataset/labelled.h"
#include "data/io/error.h"
#include "nn/low_rank.h"
#include "nn/models/encoder.h"
#include "optim/clip.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/run_corpus.h"
#include "train/run/values_by_name.h"
#include "train/run/verified_checkpoint.h"

namespace maki {

InitialWeights::InitialWeights(const std::string& run_or_file)
    : run_(run_or_file), file_(choose_model(run_or_file, "")), state_(read_checked_state(file_)) {}

Config InitialWeights::make_config(const ConfigFlags& flags, const std::vector<std::string>& corpus) const {
  Config config;
  apply_preset(config, "quickstart");
  for (const std::string& name : model_field_names()) copy_field(find_field(name), state_.config, config);
  flags.apply(config, "");
  const bool adds_adapters = state_.config.lora_rank == 0;
  for (const std::string& name : model_field_names()) {
    const bool of_adapters = name.starts_with("lora_");
    if (of_adapters && adds_adapters) continue;
    // Of all weights, those of learned positions alone depend on the context. That of an imported Llama may be longer
    // than any text to train on.
    if (name == "block_size" && state_.config.positions != Positions::learned) continue;
    const Field& field = find_field(name);
    const std::string given = field_text(config, field), there = field_text(state_.config, field);
    check(given == there,
          "{}: must be {} to start with the weights of {}; got {}; omit the option, preset or file that sets it{}",
          name, there, file_.path(), given,
          of_adapters ? ", or merge the adapters first with maki export --format maki and start with the result" : "");
  }
  check(!config.zero_projections,
        "zero_projections: says what random values a model begins with, and this one begins with the weights of {}; "
        "omit it",
        file_.path());
  if (!corpus.empty()) config.corpus = corpus;
  adopt_reading_fields(run_, flags.given_fields(), config);
  return config;
}

bool InitialWeights::leaves_some(const Config& config, const Task& task) const {
  return config.lora_rank > 0 || !has_labels_of(task);
}

// A layer of random values that stay as they are would learn nothing.
void InitialWeights::require_trained_classifier(const ParameterStore& store) const {
  const bool trained = std::ranges::any_of(store.parameters(), [](const auto& parameter) {
    return parameter->trainable() && parameter->name().starts_with(kClassifierParameters);
  });
  const bool adapted =
      std::ranges::any_of(store.parameters(), [](const auto& parameter) { return is_adapter(parameter->name()); });
  check(trained, "{}: the labels of this text need a new last layer, {}", adapted ? "lora_rank" : "freeze",
        !adapted                       ? "which must be trained; omit --freeze, or use other patterns"
        : state_.config.lora_rank == 0 ? "which adapters do not train; omit --lora-rank"
                                       : "which adapters do not train; merge them first with maki export --format "
                                         "maki, and start with the result");
}

std::string InitialWeights::load(ParameterStore& store, const Task& task) const {
  const bool same_labels = has_labels_of(task);
  if (!same_labels) {
    require_trained_classifier(store);
    const auto shown = [](const std::string& saved) {
      return truncate_for_message(fmt::format("{}", fmt::join(load_labels(saved), ", ")));
    };
    say(
        fmt::format("note: the labels of this text are {}, and {} knows {}: its classifier is not used, and a new one "
                    "is learned",
                    shown(task.data_state().labels), file_.path(), shown(state_.labels)));
  }
  load_values_by_name(file_, store,
                      [&](const std::string& name) { return same_labels || !name.starts_with(kClassifierParameters); });
  check<CheckpointError>(std::isfinite(global_norm(store.values())),
                         "{}: contains weights that are not finite; choose another checkpoint", file_.path());
  return hash_of_values(store);
}

}  // namespace maki
