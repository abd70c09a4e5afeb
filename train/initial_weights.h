// `maki train CORPUS --init-from RUN`: a new run that starts with the weights of another.
#pragma once

#include <string>

#include "train/checkpoint.h"
#include "train/flags.h"

namespace maki {

/// The weights of a checkpoint; the new run takes its model and its tokenizer with them.
class InitialWeights {
 public:
  /// A run directory (its best checkpoint, else the last) or a .maki file. Throws CheckpointError when it is damaged.
  explicit InitialWeights(const std::string& run_or_file);

  /// The fields of the model from the checkpoint, everything else from defaults and options. Throws Error for an option
  /// that contradicts the model.
  Config configure(const ConfigFlags& flags) const;
  std::shared_ptr<const Tokenizer> tokenizer() const { return load_tokenizer(state_.tokenizer); }
  /// Loads the values into a sealed store of the same model. Returns their hash, by which the run remembers them.
  /// Throws CheckpointError when one is not finite.
  std::string load(ParameterStore& store) const;

 private:
  ContainerReader file_;
  CheckpointState state_;
};

}  // namespace maki
