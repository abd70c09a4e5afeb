// Fuzz targets: readers of what others wrote or what may be damaged: files, requests, command lines. A reader gets any
// bytes and must accept them, or throw an error of its own kind with a short message, in bounded memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/check.h"

namespace maki::fuzz {

struct Target {
  const char* name;
  /// Passes the bytes to the reader.
  void (*read)(const std::string& bytes);
  /// Whether an error is of the kind that the reader documents.
  bool (*expects)(const Error& error);
  /// Small inputs that the reader accepts.
  std::vector<std::string> (*seeds)();
};

/// Of each reader one, in a file of its own.
std::span<const Target> targets();

enum class Outcome : std::uint8_t { accepted, rejected };
/// Reads the bytes. Throws std::logic_error if the reader throws something unexpected or needs too much memory: 8 bytes
/// per byte of the file and 16 MiB, tensors included.
Outcome try_input(const Target& target, const std::string& bytes);

template <class E>
bool is(const Error& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

/// Writes a file into a temporary folder, which remains until the process ends, and returns its path.
std::string scratch_file(const std::string& name, std::string_view bytes);
/// Removes it.
void remove_scratch_file(const std::string& name);
/// The temporary folder.
const std::string& scratch_folder();
/// The bytes of a file of the source tree.
std::string source_file(const std::string& path);

/// Inputs that are several files: their bytes, with this line between them. Missing ones are empty.
inline constexpr std::string_view kSeparator = "\n%%%%\n";
std::vector<std::string> split_input(std::string_view bytes, std::size_t most);
std::string join_input(const std::vector<std::string>& files);

}  // namespace maki::fuzz
