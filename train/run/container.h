// The container of a checkpoint: named sections in one file, every byte of it under a hash.
//
//   header    64 bytes: magic, version, number of sections, size of the file, XXH3-64 of header and table
//   table     64 bytes a section: name, offset, length, XXH3-64
//   sections  each at a multiple of 64 bytes, zeros in between
//   trailer   XXH3-128 of everything before it
//
// Numbers are little-endian. The same sections give the same bytes: there is no time, host or address in it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/file_system.h"

namespace maki {

/// Names in a file: printable ASCII without spaces, at least one byte and fewer than `most`.
bool is_name(std::string_view name, std::size_t most);

struct Section {
  std::string name;  ///< is_name(name, 32)
  Bytes bytes;       ///< outlives the call it is given to
};

/// Writes a container through commit_file().
void write_container(FileSystem& fs, const std::string& path, const std::vector<Section>& sections);

/// A container on disk. Every error is a CheckpointError that begins with the path, and a LostFile where the file is
/// missing or proven damaged.
class ContainerReader {
 public:
  /// Reads and verifies header, table and the zeros between the sections; sizes are checked against the file before
  /// anything is allocated.
  explicit ContainerReader(std::string path, FileSystem& fs = posix());
  ~ContainerReader();
  ContainerReader(const ContainerReader&) = delete;
  ContainerReader& operator=(const ContainerReader&) = delete;

  struct Entry {
    std::string name;
    std::uint64_t offset, length, hash;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  bool has(std::string_view name) const;
  std::uint64_t length(std::string_view name) const { return entry(name).length; }
  std::uint64_t file_size() const { return file_size_; }

  /// One section, verified.
  std::string read(std::string_view name) const;
  /// One section, verified, into memory of its exact size.
  void read(std::string_view name, std::span<std::byte> into) const;
  /// One section in pieces, in order, each of a multiple of 8 bytes but the last; verified when all were given to
  /// `use`.
  void scan(std::string_view name, const std::function<void(Bytes piece)>& use) const;
  /// Every byte of the file against the trailer.
  void verify() const;
  const std::string& path() const { return path_; }

 private:
  void read_front();
  void check_zeros(std::uint64_t begin, std::uint64_t end) const;
  const Entry& entry(std::string_view name) const;
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;

  std::string path_;
  FileSystem& fs_;
  int descriptor_ = -1;
  std::uint64_t file_size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace maki
