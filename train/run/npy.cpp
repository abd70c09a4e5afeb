#include "train/run/npy.h"

#include <bit>
#include <fmt/format.h>

#include "autograd/core/check.h"

namespace maki {

static_assert(std::endian::native == std::endian::little, "<f4 below is the representation in memory");

void write_npy(FileSystem& fs, const OutputPath& out, std::span<const float> values, std::int64_t rows,
               std::int64_t columns) {
  check(rows >= 0 && columns >= 0 && std::ssize(values) == rows * columns,
        "npy: {} rows of {} columns need as many values; got {}", rows, columns, values.size());
  // Magic string, version and the length of the header take 10 bytes; all together fill a multiple of 64.
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  const auto length = static_cast<unsigned>(header.size());
  const std::string start =
      std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length % 256) + static_cast<char>(length / 256) + header;
  write_output(fs, out, {text_bytes(start), std::as_bytes(values)});
}

}  // namespace maki
