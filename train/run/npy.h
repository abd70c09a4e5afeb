// The file format of NumPy arrays, version 1.0: numpy.lib.format in NumPy's documentation.
#pragma once

#include <span>
#include <string>

#include "data/io/output.h"

namespace maki {

/// Writes a row-major float32 array [rows, columns] that numpy.load() reads. Throws Error unless there are rows ·
/// columns values, and what write_output() throws.
void write_npy(FileSystem& fs, const OutputPath& out, std::span<const float> values, std::int64_t rows,
               std::int64_t columns);

}  // namespace maki
