// What a checkpoint holds, as typed content of a container:
//
//   config     the training fields, as TOML
//   state      step, corpus identity, sizes (cereal)
//   tokenizer  its saved form
//   tensors    name, shape, group and place of every parameter (cereal)
//   values     all parameters, flat
//   exp_avg …  the optimizer's moments, flat
//
// It is a function of the training fields and the step: not of evaluations, stops, threads or time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "data/dataset/dataset.h"
#include "optim/optimizer.h"
#include "train/config/config.h"
#include "train/run/container.h"

namespace maki {

/// Everything of a checkpoint but the tensors.
struct CheckpointState {
  std::int64_t step = 0;
  std::int64_t vocab_size = 0;
  std::int64_t characters = 0, train_tokens = 0, val_tokens = 0;
  std::string corpus_hash;  ///< 32 hexadecimal digits, lower case
  double best_loss = 0;     ///< nats a token, of a built-in corpus; 0: unknown
  Config config;            ///< its training fields
  std::string tokenizer;    ///< saved form
};

/// Writes the state after a finished step; what is the same is the same bytes.
void write_checkpoint(FileSystem& fs, const std::string& path, const CheckpointState& state, ParameterStore& store,
                      Optimizer& optimizer);

/// Reads without loading tensors. Throws LostFile for a damaged file, for one whose parts do not fit together
/// (configuration, tokenizer, vocabulary), and for one that is not written as write_checkpoint() would; CheckpointError
/// for one that cannot be read.
CheckpointState read_state(const ContainerReader& file);

struct TensorEntry {
  std::string name;
  Shape shape;
  Group group;
  std::int64_t offset;  ///< first element in the flat values

  bool operator==(const TensorEntry&) const = default;
};
std::vector<TensorEntry> read_tensors(const ContainerReader& file);

/// Throws CheckpointError, naming the first that differs, unless the file's tensors are those of the store, each in its
/// place. The store is laid out; it need not be sealed: so this is known before memory is taken.
void check_tensors(const ContainerReader& file, const ParameterStore& store);
/// The same for the moments that an optimizer with these options keeps.
void check_moments(const ContainerReader& file, const ParameterStore& store, const OptimizerOptions& options);
/// Throws LostFile unless the file's sections are those of a checkpoint with this optimizer, in their order, and no
/// other.
void check_sections(const ContainerReader& file, const OptimizerOptions& options);
/// Throws LostFile unless all values and moments are finite, second moments are not negative, and what stands between
/// tensors is zero. Reads them piece by piece, and verifies their sections.
void check_numbers(const ContainerReader& file, DType dtype, const OptimizerOptions& options);
/// Loads values into a sealed store of the same parameters.
void load_values(const ContainerReader& file, ParameterStore& store);
/// Loads the moments as well.
void load_optimizer(const ContainerReader& file, std::int64_t steps, Optimizer& optimizer);

}  // namespace maki
