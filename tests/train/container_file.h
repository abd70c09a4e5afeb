// Containers for tests: small ones, and forged ones with valid hashes.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "data/io/error.h"
#include "data/io/hash.h"
#include "tests/files.h"
#include "train/run/container.h"

namespace maki::tests {

// Sizes in bytes, as docs/formats.md defines them: of the header, of an entry of the table of sections, of the trailer.
inline constexpr std::size_t kHeader = 64, kEntry = 64, kTrailer = 16;

// The bytes of a container with these sections (name, content), which is also left in the folder as written.maki.
inline std::string write(const TemporaryFolder& folder,
                         const std::vector<std::pair<std::string, std::string>>& content) {
  const std::string path = folder / "written.maki";
  std::vector<ContainerSection> sections;
  for (const auto& section : content) sections.push_back({section.first, text_bytes(section.second)});
  write_container(posix_file_system(), path, sections);
  return read_bytes(path);
}

inline std::string small(const TemporaryFolder& folder) {
  return write(folder, {{"one", "first"}, {"two", std::string(70, 'b')}});
}

// The bytes of a container of which one in the middle of this section has changed.
inline std::string with_damage(const std::string& path, std::string_view section) {
  std::string bytes = read_bytes(path);
  const ContainerReader file(path);
  for (const ContainerReader::Entry& entry : file.entries()) {
    if (entry.name == section) bytes.at(entry.offset + entry.length / 2) ^= 1;
  }
  return bytes;
}

// The message with which a reader of the whole container rejects these bytes; empty if it accepts them.
inline std::string refusal(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder / "tried.maki";
  write_bytes(path, bytes);
  return error_message<CheckpointError>([&] {
    const ContainerReader file(path);
    file.verify();
    for (const auto& entry : file.entries()) file.read(entry.name);
  });
}

// Requires that the bytes are rejected with CheckpointError and a message that names the file.
inline void require_refused(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string said = refusal(folder, bytes);
  if (!contains(said, "tried.maki")) FAIL("accepted, or the message does not name the file: " << said);
}

template <class Number>
void store(std::string& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

// Recomputes the hashes of header and trailer, as somebody who forges a file would. `sections` is the number of entries
// that the header's hash covers.
inline std::string rehashed(std::string bytes, std::uint32_t sections) {
  const std::size_t front = std::min(kHeader + sections * kEntry, bytes.size() - kTrailer);
  store(bytes, 24, std::uint64_t{0});
  store(bytes, 24, hash64(std::string_view(bytes).substr(0, front)));
  const auto trailer = hash128(std::string_view(bytes).substr(0, bytes.size() - kTrailer));
  std::memcpy(bytes.data() + bytes.size() - kTrailer, trailer.data(), kTrailer);
  return bytes;
}

}  // namespace maki::tests
