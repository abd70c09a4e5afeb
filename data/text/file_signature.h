// Recognises compressed and binary files by their first bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace maki {

/// A compression format with two commands: one that unpacks a file, one that prints its contents to standard output.
struct Compression {
  std::string_view name, unpack, print;
};

/// The format of a compressed file that begins with these bytes (gzip, bzip2, xz, zstd or zip); null if it is none of
/// them. The object is static.
const Compression* detect_compression(std::string_view beginning);

/// Whether a file that begins with these bytes is certainly not text: it is a PDF file, or they contain a zero byte and
/// are not recognised as UTF-16 or UTF-32. An empty file is text.
bool is_binary(std::string_view beginning);

}  // namespace maki
