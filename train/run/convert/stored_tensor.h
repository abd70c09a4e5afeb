// Named tensors of other programs: those in a file, of which only the places are known, and those in memory.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/io/stable_file.h"
#include "train/run/convert/number_type.h"

namespace maki {

/// A tensor in a file: all elements, row-major.
struct StoredTensor {
  std::string name;
  NumberType type = NumberType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0, size = 0;  ///< in bytes
  std::shared_ptr<const StableFile> file = {};

  /// Reads values.size() numbers, from number `first` on, as T, float or double. Throws CheckpointError, naming the
  /// file, if they cannot be read. Requires: is_readable(type), and there are as many.
  template <class T>
  void read(std::span<T> values, std::size_t first = 0) const;
};

/// A tensor in memory, as it is written to a file: all elements, row-major.
struct OwnedTensor {
  std::string name;
  NumberType type = NumberType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// The shape in messages: "[3, 4]".
inline std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// All tensors of one file, or of several that belong together.
struct StoredTensors {
  std::string path;                   ///< of the first file
  std::vector<StoredTensor> tensors;  ///< in ascending order of their names

  /// Null if there is no tensor of this name.
  const StoredTensor* find(std::string_view name) const;
  /// Adds those of another file. Throws CorruptFile if a name is in both.
  void merge(StoredTensors other);
};

/// Whether two tensors have the same shape and numbers, which may be stored with different precision. False for types
/// that cannot be read. Throws what StoredTensor::read() throws.
bool are_equal(const StoredTensor& a, const StoredTensor& b);

}  // namespace maki
