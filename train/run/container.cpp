#include "train/run/container.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "data/io/parallel_read.h"
#include "data/io/shell_quote.h"

namespace maki {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in the byte order of the machine, and the format is little-endian");

constexpr std::array<char, 8> kMagic = {'\x89', 'm', 'a', 'k', 'i', '\r', '\n', '\x1a'};
constexpr std::uint32_t kFormatVersion = 1;       // the only one so far (docs/formats.md)
constexpr std::uint32_t kMaxSections = 64;        // a checkpoint has about a dozen
constexpr std::uint64_t kSectionAlignment = 64;   // bytes: a cache line, as tensors in memory
constexpr std::uint64_t kTrailerBytes = 16;       // a hash of 128 bits
constexpr std::size_t kScanPieceBytes = 1 << 16;  // per read when a section or file is checked without being kept
// Bytes per read when a section is kept: a huge page, so that no two threads touch a new one at the same time.
constexpr std::size_t kReadPieceBytes = 2 << 20;

struct Header {
  std::array<char, 8> magic;
  std::uint32_t version, sections;
  std::uint64_t file_size, hash;  // XXH3-64 of header and table, computed with this field 0
  std::array<char, 32> zeros;
};
struct TableEntry {
  std::array<char, 32> name;
  std::uint64_t offset, length, hash, zero;
};
static_assert(sizeof(Header) == 64 && sizeof(TableEntry) == 64);

constexpr std::uint64_t aligned(std::uint64_t n) {
  return (n + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

// The name of a section; empty unless the field is a valid name followed by zeros only.
std::string name_of(const TableEntry& entry) {
  const auto end = std::ranges::find(entry.name, '\0');
  const bool ended = end != entry.name.end() && std::all_of(end, entry.name.end(), [](char c) { return c == '\0'; });
  const std::string name(entry.name.begin(), end);
  return ended && is_name(name, entry.name.size()) ? name : "";
}

std::string front_bytes(const Header& header, const std::vector<TableEntry>& table) {
  return std::string(bytes_text(std::as_bytes(std::span(&header, 1))))
      .append(bytes_text(std::as_bytes(std::span(table))));
}

// The bytes of header and table, with the hash filled in.
std::string header_and_table(Header header, const std::vector<TableEntry>& table) {
  header.hash = 0;
  header.hash = hash64(front_bytes(header, table));
  return front_bytes(header, table);
}

// A file that is missing is lost; one that merely cannot be opened may be intact.
Descriptor open_container(FileSystem& fs, const std::string& path) {
  // O_NONBLOCK: without it, open() on a named pipe would wait for a writer.
  const int opened = retry([&] { return fs.open(path, O_RDONLY | O_NONBLOCK, 0); });
  check<CorruptFile>(opened >= 0 || errno != ENOENT, "{}: cannot be opened: {}", path, std::strerror(ENOENT));
  return {fs, path, Descriptor::Opened{opened}};
}

}  // namespace

bool is_name(std::string_view name, std::size_t most) {
  const bool printable = std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; });
  return printable && !name.empty() && name.size() < most;
}

void write_container(FileSystem& fs, const std::string& path, const std::vector<ContainerSection>& sections) {
  static constexpr std::array<std::byte, kSectionAlignment> kZeros{};
  check<CheckpointError>(sections.size() <= kMaxSections, "{}: must have at most {} sections; got {}", path,
                         kMaxSections, sections.size());
  std::vector<TableEntry> table;
  std::uint64_t offset = sizeof(Header) + sections.size() * sizeof(TableEntry);
  for (const ContainerSection& section : sections) {
    TableEntry entry{};
    check<CheckpointError>(is_name(section.name, entry.name.size()),
                           "{}: a section's name must be printable ASCII of at most {} bytes; got {}", path,
                           entry.name.size() - 1, section.name);
    std::ranges::copy(section.name, entry.name.begin());
    entry.offset = offset;
    entry.length = section.bytes.size();
    entry.hash = hash64(bytes_text(section.bytes));
    table.push_back(entry);
    offset = aligned(offset + entry.length);
  }
  const std::string head = header_and_table(
      {kMagic, kFormatVersion, static_cast<std::uint32_t>(sections.size()), offset + kTrailerBytes, 0, {}}, table);

  std::vector<Bytes> pieces = {text_bytes(head)};
  for (const ContainerSection& section : sections) {
    pieces.push_back(section.bytes);
    pieces.push_back(Bytes(kZeros).first(aligned(section.bytes.size()) - section.bytes.size()));
  }
  Hash128 hash;
  for (const Bytes piece : pieces) hash.add(piece);
  const auto trailer = hash.value();
  pieces.push_back(std::as_bytes(std::span(trailer)));
  replace_file_atomically(fs, path, pieces);
}

ContainerReader::ContainerReader(const std::string& path, FileSystem& fs) : file_(open_container(fs, path)) {
  read_front();
}

void ContainerReader::read_front() {
  const struct stat status = file_.status();
  check<CorruptFile>(S_ISREG(status.st_mode), "{}: is not a regular file", path());
  file_size_ = static_cast<std::uint64_t>(status.st_size);
  check<CorruptFile>(file_size_ >= sizeof(Header) + kTrailerBytes, "{}: is too short for a checkpoint ({} bytes)",
                     path(), file_size_);
  Header header;
  read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  refuse_git_lfs_pointer(bytes_text(std::as_bytes(std::span(&header, 1))), path(), throw_as<CorruptFile>);
  const bool own_name = path().ends_with(".maki");
  check<CorruptFile>(header.magic == kMagic, "{}: is not a maki checkpoint{}", path(),
                     own_name ? ""
                              : fmt::format("; if it is a model of another program, make a run of it with: maki import "
                                            "{}",
                                            shell_quote(path())));
  // Not a CorruptFile: a later version of maki may have written it, so it is not proven to be damaged.
  check<CheckpointError>(header.version == kFormatVersion,
                         "{}: has format version {}; this version of maki reads format version {}", path(),
                         header.version, kFormatVersion);
  check<CorruptFile>(header.file_size == file_size_,
                     "{}: must have {} bytes according to its header; got {}; it was truncated or extended", path(),
                     header.file_size, file_size_);
  const std::uint64_t table_end = sizeof(Header) + std::uint64_t{header.sections} * sizeof(TableEntry);
  const std::uint64_t end = file_size_ - kTrailerBytes;
  check<CorruptFile>(header.sections <= kMaxSections && table_end <= end,
                     "{}: is damaged: its section table is not valid", path());
  std::vector<TableEntry> table(header.sections);
  read_at(sizeof(Header), std::as_writable_bytes(std::span(table)));
  check<CorruptFile>(header_and_table(header, table) == front_bytes(header, table),
                     "{}: is damaged: checksum mismatch in header and table", path());
  check<CorruptFile>(header.zeros == Header{}.zeros, "{}: is damaged: the reserved bytes of the header must be zero",
                     path());

  // The layout is canonical: each section has exactly one valid offset.
  std::uint64_t expected = table_end;
  for (const TableEntry& entry : table) {
    const std::string name = name_of(entry);
    const bool fits = entry.offset == expected && entry.length <= end - entry.offset;
    check<CorruptFile>(fits && !name.empty() && entry.zero == 0, "{}: is damaged: its section table is not valid",
                       path());
    check<CorruptFile>(!has(name), "{}: has two sections named {}", path(), name);
    entries_.push_back({name, entry.offset, entry.length, entry.hash});
    expected = aligned(entry.offset + entry.length);
    check<CorruptFile>(expected <= end, "{}: is damaged: its section table is not valid", path());
    check_zeros(entry.offset + entry.length, expected);
  }
  check<CorruptFile>(expected == end, "{}: is damaged: its section table is not valid", path());
}

void ContainerReader::check_zeros(std::uint64_t begin, std::uint64_t end) const {
  std::array<std::byte, kSectionAlignment> gap{};
  const std::span<std::byte> bytes = std::span(gap).first(end - begin);
  read_at(begin, bytes);
  const bool zero = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
  check<CorruptFile>(zero, "{}: is damaged: bytes {} to {} must be zero", path(), begin, end);
}

void ContainerReader::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  // Not a CorruptFile either: the file was long enough when it was opened.
  check<CheckpointError>(file_.read_at(offset, into) == into.size(), "{}: became shorter while it was being read",
                         path());
}

bool ContainerReader::has(std::string_view name) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.name == name; });
}

const ContainerReader::Entry& ContainerReader::entry(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  check<CorruptFile>(found != entries_.end(), "{}: has no section {}", path(), name);
  return *found;
}

void ContainerReader::read(std::string_view name, std::span<std::byte> into,
                           const std::function<void(Bytes)>& use) const {
  const Entry& found = entry(name);
  check<CorruptFile>(found.length == into.size(), "{}: section {} must have {} bytes; got {}", path(), name,
                     into.size(), found.length);
  const auto load = [&](std::size_t begin, std::size_t end) {
    read_at(found.offset + begin, into.subspan(begin, end - begin));
  };
  process(found, into, load, use);
}

std::shared_ptr<const Mapping> ContainerReader::map(std::string_view name,
                                                    const std::function<void(Bytes)>& use) const {
  const Entry& found = entry(name);
  auto mapping = Mapping::create(file_.number(), found.offset, found.length, Mapping::Access::copy_on_write);
  if (mapping == nullptr || mapping->load(0, 1) != 0) return nullptr;
  const auto load = [&](std::size_t begin, std::size_t end) {
    const int error = mapping->load(begin, end);
    check<CheckpointError>(error == 0, "{}: cannot be read: {}", path(), std::strerror(error));
  };
  process(found, mapping->bytes(), load, use);
  return mapping;
}

// Loads all bytes of a section with all threads, passes them to `use` and verifies the checksum.
void ContainerReader::process(const Entry& entry, Bytes bytes,
                              const std::function<void(std::size_t, std::size_t)>& load,
                              const std::function<void(Bytes)>& use) const {
  Hash64 hash;
  const auto begin = [&](std::int64_t i) {
    return std::min(static_cast<std::size_t>(i) * kReadPieceBytes, bytes.size());
  };
  const auto hash_and_use = [&](std::int64_t i) {
    const Bytes piece = bytes.subspan(begin(i), begin(i + 1) - begin(i));
    hash.add(piece);
    if (use) use(piece);
  };
  read_in_parallel(
      static_cast<std::int64_t>((bytes.size() + kReadPieceBytes - 1) / kReadPieceBytes),
      [&](std::int64_t i) { load(begin(i), begin(i + 1)); }, hash_and_use);
  check<CorruptFile>(hash.value() == entry.hash, "{}: section {} is damaged: checksum mismatch", path(), entry.name);
}

std::string ContainerReader::read(std::string_view name) const {
  std::string bytes(entry(name).length, '\0');
  read(name, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Reads bytes [begin, end) in pieces of kScanPieceBytes.
void ContainerReader::read_pieces(std::uint64_t begin, std::uint64_t end, const std::function<void(Bytes)>& use) const {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kScanPieceBytes, end - begin));
  while (begin < end) {
    const std::span<std::byte> piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), end - begin));
    read_at(begin, piece);
    use(piece);
    begin += piece.size();
  }
}

void ContainerReader::scan(std::string_view name, const std::function<void(Bytes)>& use) const {
  const Entry& found = entry(name);
  Hash64 hash;
  read_pieces(found.offset, found.offset + found.length, [&](Bytes piece) {
    hash.add(piece);
    use(piece);
  });
  check<CorruptFile>(hash.value() == found.hash, "{}: section {} is damaged: checksum mismatch", path(), name);
}

void ContainerReader::verify(const std::function<void(const std::string&, Bytes)>& use) const {
  Hash128 hash;
  std::uint64_t at = 0;
  const auto add_up_to = [&](std::uint64_t end) { read_pieces(at, end, [&](Bytes piece) { hash.add(piece); }); };
  for (const Entry& section : entries_) {
    add_up_to(section.offset);
    scan(section.name, [&](Bytes piece) {
      hash.add(piece);
      if (use) use(section.name, piece);
    });
    at = section.offset + section.length;
  }
  const std::uint64_t end = file_size_ - kTrailerBytes;
  add_up_to(end);
  std::array<std::uint8_t, kTrailerBytes> trailer;
  read_at(end, std::as_writable_bytes(std::span(trailer)));
  check<CorruptFile>(trailer == hash.value(), "{}: is damaged: checksum mismatch", path());
}

}  // namespace maki
