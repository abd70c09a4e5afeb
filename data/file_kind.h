// What a file holds, by its first bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace maki {

/// A format of compressed files, with the commands that unpack a file and that write its text to standard output.
struct Compression {
  std::string_view name, unpack, print;
};

/// Null where the bytes do not begin as a compressed file does.
const Compression* compression_of(std::string_view beginning);

/// Whether a file that begins so is certainly no text: it is a PDF file, or holds a zero byte without being UTF-16 or
/// UTF-32.
bool is_binary(std::string_view beginning);

}  // namespace maki
