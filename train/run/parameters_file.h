// Parameters, with or without their optimizer, in a file: for programs that train a model of their own.
//
//   save_parameters("model.maki", store, optimizer);
//   load_parameters("model.maki", store, optimizer);  // training continues as if it had not stopped
//
// The file is a container like a checkpoint's (see docs/formats.md): the sections tensors, values and moments have the
// same form, and instead of config, state and tokenizer there is a section `store` of two 8-byte integers: the size of
// a number (4: float32, 8: float64) and the number of steps taken (0 without an optimizer).
#pragma once

#include <string>

#include "autograd/parameter.h"
#include "data/io/file_system.h"
#include "optim/optimizer.h"

namespace maki {

/// Writes all parameters, and the moments and steps of the optimizer. The file is replaced atomically: at any time,
/// either the old or the new file exists. The same state gives the same bytes. Throws CheckpointError if the
/// file cannot be written or a name does not fit (of parameters: printable ASCII, at most 127 bytes; of moments: at
/// most 31, and no section of that name); Error if the store is not sealed or the optimizer belongs to another one;
/// and DivergedError, without writing, for numbers that load_parameters() refuses: those that are not finite, and
/// moments that are negative although they may not be.
void save_parameters(const std::string& path, const ParameterStore& store, const Optimizer& optimizer,
                     FileSystem& fs = posix_file_system());
void save_parameters(const std::string& path, const ParameterStore& store, FileSystem& fs = posix_file_system());

/// Loads what save_parameters() wrote into a store with the same parameters (names, shapes, groups, order, type) and an
/// optimizer with the same moments. A store that is not sealed is sealed, without drawing initial values. All sections
/// are verified before values, moments or steps are changed. Throws CorruptFile, a CheckpointError, if the file is
/// missing, damaged or was written for other parameters or another optimizer, naming the first difference; another
/// CheckpointError if it cannot be read; and Error if the optimizer belongs to another store.
void load_parameters(const std::string& path, ParameterStore& store, Optimizer& optimizer,
                     FileSystem& fs = posix_file_system());
/// Loads parameters without moments, also from a file that has them, and from a checkpoint of a run.
void load_parameters(const std::string& path, ParameterStore& store, FileSystem& fs = posix_file_system());

}  // namespace maki
