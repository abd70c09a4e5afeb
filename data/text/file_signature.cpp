#include "data/text/file_signature.h"

#include <algorithm>
#include <fmt/format.h>

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

// A kind of file that is not the text that was meant. A file of it begins with `bytes` and, if `contains` is not empty,
// has that among its first bytes as well.
struct FileKind {
  std::string_view bytes, contains;
  std::string_view what, advice;  // {} in the advice stands for the path
  bool binary;
};
constexpr std::string_view kName = "name a file of text";
constexpr std::string_view kConvert = "convert it, for example with: pandoc --to plain {0} > {0}.txt";
constexpr FileKind kOtherFiles[] = {
    {"%PDF-", "", "a PDF document", "extract its text with: pdftotext {0}", true},
    {"PK\x03\x04", "[Content_Types].xml", "an office document", kConvert, true},
    {"PK\x03\x04", "mimetypeapplication/", "an office document or e-book", kConvert, true},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "", "an office document", "save it as plain text", true},
    {"\x7F"
     "ELF",
     "", "a program", kName, true},
    {"MZ", "\0"sv, "a program", kName, true},
    {"\x89PNG\r\n", "", "a picture", kName, true},
    {"\xFF\xD8\xFF", "", "a picture", kName, true},
    {"SQLite format 3\0"sv, "", "a database", "write the text in it to a file", true},
    {"\x80\x02}", "", "a pickle of Python", kName, true},
    {"\x80\x03}", "", "a pickle of Python", kName, true},
    {"\x80\x04\x95", "", "a pickle of Python", kName, true},
    {"\x80\x05\x95", "", "a pickle of Python", kName, true},
    {"version https://git-lfs.github.com/spec/", "", "a pointer that Git LFS left in place of the file",
     "fetch the file itself with: git lfs pull", false},
};

const FileKind* find_other_file(std::string_view beginning) {
  constexpr std::size_t kSearchedBytes = 4096;  // an archive names its first files there
  const std::string_view first = beginning.substr(0, kSearchedBytes);
  const auto* const found = std::ranges::find_if(kOtherFiles, [&](const FileKind& kind) {
    return first.starts_with(kind.bytes) && first.find(kind.contains) != std::string_view::npos;
  });
  return found == std::end(kOtherFiles) ? nullptr : found;
}

}  // namespace

const Compression* detect_compression(std::string_view beginning) {
  for (const Signature& magic : kCompressionSignatures) {
    if (beginning.size() > magic.offset && beginning.substr(magic.offset).starts_with(magic.bytes))
      return &magic.format;
  }
  return nullptr;
}

std::string describe_other_file(std::string_view beginning, const std::string& word) {
  const FileKind* const kind = find_other_file(beginning);
  if (kind == nullptr) return "";
  return fmt::format("is {}; {}", kind->what, fmt::format(fmt::runtime(kind->advice), word));
}

bool is_known_binary(std::string_view beginning) {
  const FileKind* const kind = find_other_file(beginning);
  return kind != nullptr && kind->binary;
}

bool is_binary(std::string_view beginning) {
  if (is_known_binary(beginning)) return true;
  return beginning.find('\0') != std::string_view::npos && !detect_encoding(beginning);
}

}  // namespace maki
