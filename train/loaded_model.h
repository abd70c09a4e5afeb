// A model read from a checkpoint, for verbs that only look at it: weights, tokenizer, configuration; no optimizer.
#pragma once

#include <memory>
#include <string>

#include "nn/gpt.h"
#include "train/checkpoint.h"
#include "train/run_directory.h"

namespace maki {

/// choose_checkpoint(), with its notes said aloud.
std::string chosen_checkpoint(const std::string& run_or_file, const std::string& choice);

/// Throws LostFile unless the file's tensors are those of the model its configuration describes, for which no
/// memory is taken.
void check_model(const ContainerReader& file, const CheckpointState& state);
/// Throws LostFile unless training can resume from this file: every byte is verified; configuration, tokenizer,
/// tensors and moments fit together; and all numbers are finite. Throws CheckpointError where the file cannot be read
/// and nothing is known of it.
CheckpointState check_resumable(const std::string& path, FileSystem& fs = posix());
/// The same for a checkpoint of a run, which must also hold the step that its name says.
void verify_checkpoint(const RunDirectory& run, const std::string& path);

struct LoadedModel {
  /// Verifies and reads what it needs of the file, and nothing else. `dtype`: "" for the run's own.
  explicit LoadedModel(const std::string& path, const std::string& dtype = "");

  std::string path;
  CheckpointState state;
  std::shared_ptr<const Tokenizer> tokenizer;
  ParameterStore store;
  Gpt model;

 private:
  LoadedModel(const ContainerReader& file, const std::string& dtype);
};

}  // namespace maki
