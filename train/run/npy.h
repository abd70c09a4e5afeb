// The file format of NumPy arrays, version 1.0: numpy.lib.format in NumPy's documentation.
#pragma once

#include <span>
#include <string>

#include "train/run/file_system.h"

namespace maki {

/// Writes a row-major float32 array [rows, columns] that numpy.load() reads; an existing file is replaced. Throws Error
/// unless there are rows · columns values, and CheckpointError if the file cannot be written.
void write_npy(FileSystem& fs, const std::string& path, std::span<const float> values, std::int64_t rows,
               std::int64_t columns);

}  // namespace maki
