// The container format of checkpoints: named sections in one file, with checksums that cover every byte.
//
//   header    64 bytes: magic, version, number of sections, size of the file, XXH3-64 of header and table
//   table     64 bytes per section: name, offset, length, XXH3-64
//   sections  each begins at a multiple of 64 bytes; the padding in between is zero
//   trailer   XXH3-128 of everything before it
//
// Numbers are little-endian. Equal sections give equal bytes: the file contains no time, host name or path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/io/descriptor.h"
#include "data/io/mapping.h"

namespace maki {

/// Whether a text is a valid name of a section or a tensor: printable ASCII without spaces, at least one byte and fewer
/// than `most`.
bool is_name(std::string_view name, std::size_t most);

struct ContainerSection {
  std::string name;  ///< is_name(name, 32)
  Bytes bytes;       ///< not owned
};

/// Writes a container through replace_file_atomically(). Throws CheckpointError if it cannot be written, a name is not
/// allowed or there are more than 64 sections. Requires: the names differ; a reader rejects a file with equal ones.
void write_container(FileSystem& fs, const std::string& path, const std::vector<ContainerSection>& sections);

/// A container on disk, open until destruction. Every error is a CheckpointError whose message begins with the path,
/// and is a CorruptFile if the file is missing or proven to be damaged. Functions that take the name of a section,
/// except has(), throw CorruptFile if there is no such section.
class ContainerReader {
 public:
  /// Reads and verifies the header, the table and the padding between sections. All sizes are checked against the size
  /// of the file before memory is allocated. Requires: `fs` outlives the reader.
  explicit ContainerReader(const std::string& path, FileSystem& fs = posix_file_system());

  struct Entry {
    std::string name;
    std::uint64_t offset, length, hash;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  bool has(std::string_view name) const;
  std::uint64_t length(std::string_view name) const { return entry(name).length; }
  std::uint64_t file_size() const { return file_size_; }

  /// Reads one section and verifies its checksum.
  std::string read(std::string_view name) const;
  /// Reads one section into memory of exactly its length (else throws CorruptFile), with all threads if the section is
  /// long, and verifies its checksum. If `use` is given, it is called with consecutive pieces of what was read, in
  /// order and never concurrently, but on any thread, before the checksum is verified. What it throws is rethrown.
  void read(std::string_view name, std::span<std::byte> into, const std::function<void(Bytes piece)>& use = {}) const;
  /// Maps one section, without a copy in memory, and verifies its checksum; the mapping outlives the reader. Null,
  /// without a call of `use`, if the system cannot or would not report a disk that fails, or for an empty section.
  std::shared_ptr<const Mapping> map(std::string_view name, const std::function<void(Bytes piece)>& use = {}) const;
  /// Passes one section to `use` in consecutive pieces of 1 MiB; the last may be shorter. The checksum is verified
  /// after the last call, so `use` receives data that is not verified yet.
  void scan(std::string_view name, const std::function<void(Bytes piece)>& use) const;
  /// Reads the whole file once and verifies its checksum and those of all sections. `use`, if given, receives each
  /// section as scan() passes it.
  void verify(const std::function<void(const std::string& section, Bytes piece)>& use = {}) const;
  const std::string& path() const { return file_.path(); }

 private:
  void read_front();
  void check_zeros(std::uint64_t begin, std::uint64_t end) const;
  const Entry& entry(std::string_view name) const;
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;
  void read_pieces(std::uint64_t begin, std::uint64_t end, const std::function<void(Bytes piece)>& use) const;
  void process(const Entry& entry, Bytes bytes, const std::function<void(std::size_t begin, std::size_t end)>& load,
               const std::function<void(Bytes piece)>& use) const;

  Descriptor file_;
  std::uint64_t file_size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace maki
