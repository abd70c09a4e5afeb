// Weights between a parameter store and the tensors of another program, as a table of names says.
#pragma once

#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "train/run/convert/names.h"
#include "train/run/convert/stored_tensor.h"

namespace maki {

/// What a file may contain besides the tensors of the table.
struct ReadingRules {
  std::string optional_prefix = {};       ///< of stored names, which files may leave out
  std::vector<std::string> ignored = {};  ///< patterns (data/text/glob.h) of tensors that are not needed
};

/// The tensor of this name, which has the optional prefix, or else of the name without it; null if there is none.
const StoredTensor* find_stored(const StoredTensors& stored, const std::string& name, const ReadingRules& rules);

/// Throws CheckpointError, naming the tensor, if one is missing, has another shape or a type that is not read, or if
/// there is one that the model lacks; Error if the table has no row for a parameter. Of parameters by token there may
/// be more rows than in the store; returns how many more. The store need not be sealed, so that no memory is allocated
/// for a model that the file does not contain. Requires: `stored` has a file.
std::int64_t check_weights(const StoredTensors& stored, const std::vector<NamePair>& names, const ReadingRules& rules,
                           const ParameterStore& store);
/// Loads every parameter of a sealed store. Throws CheckpointError if a value is not finite; the store then contains
/// some of the values. Requires: check_weights() has passed; no Form::rotary_pairs.
void load_weights(const StoredTensors& stored, const std::vector<NamePair>& names, const ReadingRules& rules,
                  ParameterStore& store);

struct WritingRules {
  std::int64_t head_size = 1;   ///< for Form::rotary_pairs
  bool zero_biases = false;     ///< a bias that the model lacks is written as zeros
  std::int64_t token_rows = 0;  ///< rows of parameters by token; those beyond the vocabulary are zero; 0: as they are
  NumberType type = NumberType::f32;
};

/// The values of every parameter in the names, in the order of the table; rows whose parameter the model lacks are left
/// out, except with zero_biases. Throws Error, naming the parameter, if one is not in the table, or has a number of
/// float64 that float32 cannot hold where that is the type.
std::vector<OwnedTensor> collect_weights(const ParameterStore& store, const std::vector<NamePair>& names,
                                         const WritingRules& rules);

/// A table with maki's own names for any model.
std::vector<NamePair> own_names(const ParameterStore& store);

}  // namespace maki
