#include "data/text/file_signature.h"

#include "data/text/encoding.h"

namespace maki {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  Compression format;
};
constexpr Signature kCompressionSignatures[] = {
    {0, "\x1F\x8B\x08"sv, {"gzip", "gunzip --keep", "zcat"}}, {4, "1AY&SY"sv, {"bzip2", "bunzip2 --keep", "bzcat"}},
    {0, "\xFD\x37zXZ\0"sv, {"xz", "unxz --keep", "xzcat"}},   {0, "\x28\xB5\x2F\xFD"sv, {"zstd", "unzstd", "zstdcat"}},
    {0, "PK\x03\x04"sv, {"zip", "unzip", "unzip -p"}},
};

}  // namespace

const Compression* detect_compression(std::string_view beginning) {
  for (const Signature& magic : kCompressionSignatures) {
    if (beginning.size() > magic.offset && beginning.substr(magic.offset).starts_with(magic.bytes))
      return &magic.format;
  }
  return nullptr;
}

bool is_binary(std::string_view beginning) {
  if (beginning.starts_with("%PDF-")) return true;
  return beginning.find('\0') != std::string_view::npos && !detect_encoding(beginning);
}

}  // namespace maki
