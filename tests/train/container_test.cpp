// The container: every flipped byte, every truncation, extension and splice is rejected with a message.
#include "train/run/container.h"

#include "tests/train/container_file.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a container returns its sections, and equal sections give equal bytes") {
  const TemporaryFolder folder;
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
  REQUIRE(contains(error_message<CheckpointError>([&] { file.read("three"); }), "three"));
  std::vector<std::byte> short_of_it(63);
  REQUIRE(contains(error_message<CheckpointError>([&] { file.read("two", short_of_it); }), "63"));

  const TemporaryFolder another;
  REQUIRE(write(another, {{"one", "first"}, {"none", ""}, {"two", std::string(64, 'b')}}) == bytes);
  REQUIRE(write(another, {{"none", ""}, {"one", "first"}, {"two", std::string(64, 'b')}}) != bytes);
}

TEST_CASE("the format has not changed: a change needs a new version number") {
  const TemporaryFolder folder;
  REQUIRE(hash128_hex(small(folder)) == "d98a92fd8814511cf3e19a7b9ec8b305");
}

TEST_CASE("every flipped byte is rejected") {
  const TemporaryFolder folder;
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

TEST_CASE("every truncation, every extension and every splice is rejected") {
  const TemporaryFolder folder;
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

TEST_CASE("reading one section verifies that section and the header, and no other section") {
  const TemporaryFolder folder;
  std::string bytes = small(folder);
  const std::size_t first = kHeader + 2 * kEntry;
  bytes[first] ^= 1;
  write_bytes(folder / "partly.maki", bytes);
  const ContainerReader file(folder / "partly.maki");
  REQUIRE(file.read("two") == std::string(70, 'b'));
  REQUIRE(contains(error_message<CheckpointError>([&] { file.read("one"); }), "damaged"));
  REQUIRE(contains(error_message<CheckpointError>([&] { file.verify(); }), "damaged"));
}

TEST_CASE("a file of a later format version is rejected, naming both versions") {
  const TemporaryFolder folder;
  std::string bytes = small(folder);
  store(bytes, 8, std::uint32_t{2});
  const std::string said = refusal(folder, rehashed(bytes, 2));
  REQUIRE(contains(said, "version 2"));
  REQUIRE(contains(said, "version 1"));
}

TEST_CASE("what is not a regular file is rejected") {
  const TemporaryFolder folder;
  const auto said = [](const std::string& path) {
    return error_message<CheckpointError>([&] { const ContainerReader file(path); });
  };
  REQUIRE(contains(said(folder / "none"), "No such file"));
  REQUIRE(contains(said(folder / ""), "not a regular file"));
  REQUIRE(contains(said("/dev/null"), "not a regular file"));
}

TEST_CASE("a name that is too long and too many sections are rejected when writing") {
  const TemporaryFolder folder;
  REQUIRE(contains(error_message<CheckpointError>([&] { write(folder, {{std::string(32, 'n'), ""}}); }), "nnn"));
  const std::vector<std::pair<std::string, std::string>> many(65, {"s", ""});
  REQUIRE(contains(error_message<CheckpointError>([&] { write(folder, many); }), "65"));
}
