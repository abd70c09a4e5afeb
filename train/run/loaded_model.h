// A model loaded from a checkpoint, for verbs that only read it: weights, tokenizer and configuration, no optimizer.
#pragma once

#include <memory>
#include <string>

#include "nn/model.h"
#include "train/run/checkpoint.h"

namespace maki {

/// finding_specials() for those of a model, of which one may have no special tokens.
PairTokenizers finding_specials(const PairTokenizers& tokenizers);

/// The numbers in which a loaded model has the matrices that every token is multiplied by: those that were trained, or
/// these rounded to 8 bits (ParameterStore::keep_int8_values()), for a model that is only read.
enum class WeightNumbers : std::uint8_t { trained, int8 };

/// Selects the constructor of LoadedModel that merges adapters.
struct MergeAdapters {};

struct LoadedModel {
  /// Reads and verifies only the sections that it needs. `dtype` is the type of the loaded weights; without one it
  /// is that of the run, whose weights may be mapped: the file must then not be shortened or overwritten while the
  /// model exists (it may be replaced or deleted). Throws CorruptFile if the file is missing or damaged,
  /// CheckpointError if it cannot be read, and Error for a `dtype` of whole numbers, or for `weights` of 8 bits of a
  /// model that is not float32. With `specials`, special tokens that
  /// are written in a text are these tokens (finding_specials()), and CorpusError is thrown if no vocabulary has any.
  explicit LoadedModel(const std::string& path, std::optional<DType> dtype = {}, bool specials = false,
                       WeightNumbers weights = WeightNumbers::trained);
  /// A model without adapters that computes what `adapted` does: what they add is part of its weights (merge_adapters()
  /// in nn/low_rank.h). They share the n-gram prior.
  LoadedModel(const LoadedModel& adapted, MergeAdapters);

  std::string path;
  CheckpointState state;
  PairTokenizers tokenizers;
  std::shared_ptr<const Tokenizer> tokenizer;  ///< of what the model writes
  ParameterStore store;
  std::unique_ptr<Model> model;

  /// The model as a Generator. Throws Error if this kind of model cannot generate.
  const Generator& generator() const;

 private:
  LoadedModel(const ContainerReader& file, std::optional<DType> dtype);
  void round_weights();
};

}  // namespace maki
