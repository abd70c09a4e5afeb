// Recognises files that are not plain text by their first bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace maki {

/// A compression format with two commands: one that unpacks a file, one that prints its contents to standard output.
struct Compression {
  std::string_view name, unpack, print;
};

/// The format of a compressed file that begins with these bytes (gzip, bzip2, xz, zstd or zip); null if it is none of
/// them. The object is static.
const Compression* detect_compression(std::string_view beginning);

/// What a file that begins with these bytes is, and what to do to read its text: "is a PDF document; extract its text
/// with: pdftotext thesis.pdf". Knows PDF and office documents, programs, pictures, databases, pickles of Python and
/// pointers of Git LFS; empty for anything else. `word` is the path of the file as a word of a shell command.
std::string describe_other_file(std::string_view beginning, const std::string& word);

/// Whether describe_other_file() knows a file that begins with these bytes, and that it is binary.
bool is_known_binary(std::string_view beginning);
/// Whether a file that begins with these bytes is certainly not text: it is known to be binary, or they contain a zero
/// byte and are not recognised as UTF-16 or UTF-32. An empty file is text.
bool is_binary(std::string_view beginning);

}  // namespace maki
