// Named tensors in a file of another program: where they are, not their values.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/convert/mapped_file.h"
#include "train/run/convert/number_type.h"

namespace maki {

struct StoredTensor {
  std::string name;
  NumberType type = NumberType::f32;
  std::vector<std::int64_t> shape;
  Bytes bytes;  ///< of all elements, row-major; at any address; of a file, their place in MappedFile::bytes()
};

/// The shape in messages: "[3, 4]".
inline std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// All tensors of one file, or of several that belong together. Owns the files.
struct StoredTensors {
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<StoredTensor> tensors;  ///< in ascending order of their names

  /// Null if there is no tensor of this name.
  const StoredTensor* find(std::string_view name) const;
  /// Reads values.size() numbers of one of the tensors, from number `first` on, as T, float or double. Throws
  /// CheckpointError, naming file and tensor, if they cannot be read. Requires: is_readable(tensor.type), and it has as
  /// many.
  template <class T>
  void read(const StoredTensor& tensor, std::span<T> values, std::size_t first = 0) const;
  /// Whether two of the tensors have the same shape and numbers, which may be stored with different precision. False
  /// for types that cannot be read. Throws what read() throws.
  bool are_equal(const StoredTensor& a, const StoredTensor& b) const;
  /// Adds those of another file. Throws CorruptFile if a name is in both.
  void merge(StoredTensors other);
};

}  // namespace maki
