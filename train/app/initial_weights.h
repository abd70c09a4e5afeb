// `maki train CORPUS --init-from RUN`: a new run that starts with the weights of another.
#pragma once

#include <string>

#include "train/app/flags.h"
#include "train/loop/task.h"
#include "train/run/checkpoint.h"

namespace maki {

/// The weights of a checkpoint. The new run adopts its model and its tokenizer as well.
class InitialWeights {
 public:
  /// Opens a .maki file, or the best checkpoint of a run directory (else the last). Throws Error if there is none,
  /// CheckpointError if it cannot be read or is damaged; another of the run takes the place of a damaged one.
  explicit InitialWeights(const std::string& run_or_file);

  /// The configuration of the new run: the fields of the model come from the checkpoint, everything else from the
  /// quickstart preset and the options. `corpus` is the text of the new run; it is read as that of the checkpoint's run
  /// unless options say otherwise (adopt_reading_fields()). Throws Error for an option that contradicts the model;
  /// those of adapters (lora_…) do not if the checkpoint has none.
  Config make_config(const ConfigFlags& flags, const std::vector<std::string>& corpus) const;
  PairTokenizers tokenizers() const { return load_tokenizers(state_); }
  /// Whether load() leaves parameters of a run with this task as they are: adapters, and the classifier of other
  /// labels.
  bool leaves_some(const Config& config, const Task& task) const;
  /// Loads the values into a sealed store of the same model, of which other parameters may be frozen; adapters that the
  /// checkpoint does not have keep their values. So does the classifier if the labels of the task are not those of the
  /// checkpoint, which is said on stderr. Returns the hash of all values of the store, those of new parameters
  /// included, which the new run records as init_from. Throws Error if it is the classifier and is not to be trained,
  /// and CheckpointError if the values are damaged, do not fit the store or are not finite; the store must then not be
  /// used.
  std::string load(ParameterStore& store, const Task& task) const;

 private:
  bool has_labels_of(const Task& task) const {
    return state_.labels.empty() || task.data_state().labels == state_.labels;
  }
  void require_trained_classifier(const ParameterStore& store) const;

  std::string run_;
  ContainerReader file_;
  CheckpointState state_;
};

}  // namespace maki
