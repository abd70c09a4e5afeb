// The container of checkpoints, as it is and with right checksums of header and file.
#include "train/run/container.h"

#include <cstring>

#include "data/io/error.h"
#include "data/io/file.h"
#include "data/io/hash.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/unsynced.h"

namespace maki::fuzz {
namespace {

constexpr std::size_t kHeader = 64, kEntry = 64, kTrailer = 16, kSections = 12, kFileSize = 16, kHash = 24;

template <class Number>
void put(std::string& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

std::string with_checksums(std::string bytes) {
  if (bytes.size() < kHeader + kTrailer) return bytes;
  std::uint32_t sections = 0;
  std::memcpy(&sections, bytes.data() + kSections, sizeof sections);
  const std::size_t end = bytes.size() - kTrailer;
  const auto front = static_cast<std::size_t>(std::min<std::uint64_t>(kHeader + std::uint64_t{sections} * kEntry, end));
  put(bytes, kFileSize, std::uint64_t{bytes.size()});
  put(bytes, kHash, std::uint64_t{0});
  put(bytes, kHash, hash64(std::string_view(bytes).substr(0, front)));
  put(bytes, end, hash128(std::string_view(bytes).substr(0, end)));
  return bytes;
}

void read_container(const std::string& bytes) {
  const ContainerReader file(scratch_file("file.maki", bytes));
  file.verify();
  for (const auto& entry : file.entries()) {
    file.read(entry.name);
    file.scan(entry.name, [](Bytes) {});
  }
}

void read_as_container(const std::string& bytes) {
  const std::string forged = with_checksums(bytes);
  read_container(forged);
  if (forged != bytes) read_container(bytes);
}

std::vector<std::string> container_seeds() {
  Unsynced fs;
  const std::string long_text(70, 'b'), path = scratch_folder() + "/written.maki";
  write_container(fs, path, {{"one", text_bytes("first")}, {"two", text_bytes(long_text)}});
  std::vector<std::string> files = {read_file_limited(posix_file_system(), path, 1 << 20),
                                    source_file("tests/golden/llama/checkpoints/step-00000005.maki")};
  remove_scratch_file("written.maki");
  return files;
}

}  // namespace

const Target kContainer = {"container", read_as_container, is<CheckpointError>, container_seeds};

}  // namespace maki::fuzz
