// The container: every flipped byte, every cut, every extension and every splice is refused with a sentence; and so is
// a file that lies with valid hashes.
#include "train/container.h"

#include <algorithm>
#include <cstring>

#include "data/hash.h"
#include "tests/files.h"
#include "train/error.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::size_t kHeader = 64, kEntry = 64, kTrailer = 16;

std::string write(const Folder& folder, const std::vector<std::pair<std::string, std::string>>& content) {
  const std::string path = folder / "written.maki";
  std::vector<Section> sections;
  for (const auto& section : content) sections.push_back({section.first, as_bytes(section.second)});
  write_container(posix(), path, sections);
  return get(path);
}

std::string small(const Folder& folder) { return write(folder, {{"one", "first"}, {"two", std::string(70, 'b')}}); }

// What a reader of everything says of these bytes; empty when it finds no fault.
std::string refusal(const Folder& folder, const std::string& bytes) {
  const std::string path = folder / "tried.maki";
  put(path, bytes);
  return sentence<CheckpointError>([&] {
    const ContainerReader file(path);
    file.verify();
    for (const auto& entry : file.entries()) file.read(entry.name);
  });
}

void require_refused(const Folder& folder, const std::string& bytes) {
  const std::string said = refusal(folder, bytes);
  if (!holds(said, "tried.maki")) FAIL("accepted, or the sentence names no file: " << said);
}

template <class Number>
void store(std::string& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

// Makes header and trailer hashes right again, as whoever forges a file would.
std::string rehashed(std::string bytes, std::uint32_t sections) {
  const std::size_t front = std::min(kHeader + sections * kEntry, bytes.size() - kTrailer);
  store(bytes, 24, std::uint64_t{0});
  store(bytes, 24, hash64(std::string_view(bytes).substr(0, front)));
  const auto trailer = hash128(std::string_view(bytes).substr(0, bytes.size() - kTrailer));
  std::memcpy(bytes.data() + bytes.size() - kTrailer, trailer.data(), kTrailer);
  return bytes;
}

}  // namespace

TEST_CASE("a container gives back its sections, and the same sections are the same bytes") {
  const Folder folder;
  const std::string bytes = write(folder, {{"one", "first"}, {"none", ""}, {"two", std::string(64, 'b')}});
  REQUIRE(refusal(folder, bytes).empty());
  const ContainerReader file(folder / "tried.maki");
  REQUIRE(file.entries().size() == 3);
  REQUIRE(file.read("one") == "first");
  REQUIRE(file.read("none").empty());
  REQUIRE(file.read("two") == std::string(64, 'b'));
  REQUIRE(file.has("one"));
  REQUIRE_FALSE(file.has("three"));
  REQUIRE(file.length("two") == 64);
  for (const auto& entry : file.entries()) REQUIRE(entry.offset % 64 == 0);
  REQUIRE(holds(sentence<CheckpointError>([&] { file.read("three"); }), "three"));
  std::vector<std::byte> short_of_it(63);
  REQUIRE(holds(sentence<CheckpointError>([&] { file.read("two", short_of_it); }), "63"));

  const Folder another;
  REQUIRE(write(another, {{"one", "first"}, {"none", ""}, {"two", std::string(64, 'b')}}) == bytes);
  REQUIRE(write(another, {{"none", ""}, {"one", "first"}, {"two", std::string(64, 'b')}}) != bytes);
}

TEST_CASE("the format is what it was: a change of it needs a new version") {
  const Folder folder;
  REQUIRE(hash_hex(small(folder)) == "d98a92fd8814511cf3e19a7b9ec8b305");
}

TEST_CASE("every flipped byte is refused") {
  const Folder folder;
  const std::string good = small(folder);
  REQUIRE(refusal(folder, good).empty());
  int flips = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    const bool thorough = at < kHeader || at >= good.size() - kTrailer;
    for (int mask = 1; mask < 256; ++mask) {
      if (!thorough && mask != 0x01 && mask != 0x80 && mask != 0xFF) continue;
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      INFO("byte " << at << " with " << mask);
      require_refused(folder, bytes);
      ++flips;
    }
  }
  REQUIRE(flips > 20000);
}

TEST_CASE("every cut, every extension and every splice is refused") {
  const Folder folder;
  const std::string good = small(folder);
  const std::string other = write(folder, {{"one", "other"}, {"two", std::string(70, 'c')}});
  REQUIRE(good.size() == other.size());
  for (std::size_t size = 0; size < good.size(); ++size) require_refused(folder, good.substr(0, size));
  for (std::size_t more = 1; more <= 64; ++more) {
    require_refused(folder, good + std::string(more, '\0'));
    require_refused(folder, good + good.substr(0, more));
  }
  require_refused(folder, good + good);
  int splices = 0;
  for (std::size_t at = 1; at < good.size(); ++at) {
    const std::string bytes = good.substr(0, at) + other.substr(at);
    if (bytes == good || bytes == other) continue;
    INFO("spliced at " << at);
    require_refused(folder, bytes);
    ++splices;
  }
  REQUIRE(splices > 100);
}

TEST_CASE("a reader of one section verifies that one and the header, and needs no other") {
  const Folder folder;
  std::string bytes = small(folder);
  const std::size_t first = kHeader + 2 * kEntry;
  bytes[first] ^= 1;
  put(folder / "partly.maki", bytes);
  const ContainerReader file(folder / "partly.maki");
  REQUIRE(file.read("two") == std::string(70, 'b'));
  REQUIRE(holds(sentence<CheckpointError>([&] { file.read("one"); }), "damaged"));
  REQUIRE(holds(sentence<CheckpointError>([&] { file.verify(); }), "damaged"));
}

TEST_CASE("a forged table with valid hashes is refused before anything is allocated") {
  const Folder folder;
  const std::string good = small(folder);
  REQUIRE(rehashed(good, 2) == good);  // the forger's hashes are the right ones
  const std::size_t offset_at = kHeader + 32, length_at = kHeader + 40;
  for (const std::uint64_t lie :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{6}, std::uint64_t{64}, std::uint64_t{4096},
        std::uint64_t{1} << 31, std::uint64_t{1} << 40, std::uint64_t{1} << 63, ~std::uint64_t{0},
        ~std::uint64_t{0} - 63, ~std::uint64_t{0} - 191, ~std::uint64_t{0} - 255}) {
    for (std::size_t section = 0; section < 2; ++section) {
      std::string bytes = good;
      store(bytes, offset_at + section * kEntry, lie);
      INFO("offset " << lie << " of section " << section);
      require_refused(folder, rehashed(bytes, 2));
      bytes = good;
      store(bytes, length_at + section * kEntry, lie);
      INFO("length " << lie << " of section " << section);
      require_refused(folder, rehashed(bytes, 2));
    }
  }
  for (const std::uint32_t count : {0u, 1u, 3u, 4u, 64u, 65u, 1u << 26, ~0u}) {
    std::string bytes = good;
    store(bytes, 12, count);
    INFO(count << " sections");
    require_refused(folder, rehashed(bytes, std::min(count, 100u)));
  }
  std::string unended = good;
  std::memset(unended.data() + kHeader, 'x', 32);
  require_refused(folder, rehashed(unended, 2));
}

TEST_CASE("opening alone finds every flipped byte of header and table, and every cut and extension") {
  const Folder folder;
  const std::string good = small(folder);
  const auto require_closed = [&](const std::string& bytes) {
    put(folder / "tried.maki", bytes);
    REQUIRE(holds(sentence<CheckpointError>([&] { const ContainerReader file(folder / "tried.maki"); }), "tried.maki"));
  };
  for (std::size_t at = 0; at < kHeader + 2 * kEntry; ++at) {
    std::string bytes = good;
    bytes[at] ^= 0x20;
    INFO("byte " << at);
    require_closed(bytes);
  }
  require_closed(good.substr(0, good.size() - 1));
  require_closed(good + "x");
  std::string bytes = good;
  store(bytes, 16, std::uint64_t{good.size() + 64});
  require_closed(rehashed(bytes, 2));
}

TEST_CASE("sections out of their order are refused, though every hash is right") {
  const Folder folder;
  std::string bytes = write(folder, {{"one", "first"}, {"two", "other"}, {"three", "third"}});
  REQUIRE(rehashed(bytes, 3) == bytes);
  // The first two change places: offset, length and hash, not the names.
  std::swap_ranges(bytes.begin() + kHeader + 32, bytes.begin() + kHeader + 64, bytes.begin() + kHeader + kEntry + 32);
  require_refused(folder, rehashed(bytes, 3));
}

TEST_CASE("two sections of one name are refused") {
  const Folder folder;
  std::string bytes = small(folder);
  std::memcpy(bytes.data() + kHeader + kEntry, bytes.data() + kHeader, 32);
  require_refused(folder, rehashed(bytes, 2));
}

TEST_CASE("a file of a later version is refused, naming both versions") {
  const Folder folder;
  std::string bytes = small(folder);
  store(bytes, 8, std::uint32_t{2});
  const std::string said = refusal(folder, rehashed(bytes, 2));
  REQUIRE(holds(said, "version 2"));
  REQUIRE(holds(said, "version 1"));
}

TEST_CASE("what is no file is refused") {
  const Folder folder;
  const auto said = [](const std::string& path) {
    return sentence<CheckpointError>([&] { const ContainerReader file(path); });
  };
  REQUIRE(holds(said(folder / "none"), "No such file"));
  REQUIRE(holds(said(folder / ""), "not a file"));
  REQUIRE(holds(said("/dev/null"), "not a file"));
}

TEST_CASE("names that do not fit and too many sections are refused when writing") {
  const Folder folder;
  REQUIRE(holds(sentence<CheckpointError>([&] { write(folder, {{std::string(32, 'n'), ""}}); }), "too long"));
  const std::vector<std::pair<std::string, std::string>> many(65, {"s", ""});
  REQUIRE(holds(sentence<CheckpointError>([&] { write(folder, many); }), "65"));
}
