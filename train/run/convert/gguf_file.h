// GGUF version 3, the format of llama.cpp: metadata, places of tensors, data.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/io/output.h"

namespace maki {

/// Numbers of a tensor in a GGUF file; the values are those of ggml_type.
enum class GgufType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8 };
/// The type of a name: "f32", "f16", "q8_0". Throws Error, which suggests the nearest name, for any other.
GgufType gguf_type_named(const std::string& name);

/// Values in a block of Q8_0, which has one scale.
inline constexpr std::size_t kQ8Block = 32;
/// The bytes of values in a type. In Q8_0, a block of 32 is a scale d = max|x| / 127, stored as float16, and 32 int8,
/// x / d rounded to nearest, halves away from zero, with d before it is rounded to float16; all are 0 if d is. Throws
/// Error if a value is too large for the type, or Q8_0 is given a number of values that is no multiple of 32.
std::vector<std::byte> gguf_numbers(GgufType type, std::span<const float> values);

/// Collects a file in memory. Requires: the keys differ, and so do the names of tensors.
class GgufFile {
 public:
  void add(const std::string& key, std::uint32_t value);
  void add(const std::string& key, float value);
  void add(const std::string& key, bool value);
  void add(const std::string& key, const std::string& value);
  void add(const std::string& key, const std::vector<std::string>& values);
  void add(const std::string& key, const std::vector<std::int32_t>& values);
  /// `shape` is that of a row-major array; the file has it the other way round. Requires: `bytes` are what
  /// gguf_numbers() returns for as many values as the shape has.
  void add_tensor(const std::string& name, const std::vector<std::int64_t>& shape, GgufType type,
                  std::vector<std::byte> bytes);
  /// Through write_output(), whose errors it throws.
  void write(FileSystem& fs, const OutputPath& out) const;

 private:
  void begin(const std::string& key, std::uint32_t type);

  std::string metadata_, infos_;
  std::uint64_t keys_ = 0, tensors_ = 0, offset_ = 0;
  std::vector<std::vector<std::byte>> data_;
};

}  // namespace maki
