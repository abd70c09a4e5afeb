// Forged containers: some or all of their checksums match, yet they are rejected before memory is allocated.
#include "tests/train/container_file.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("readers of a section verify its checksum, and verify that of the file") {
  const TemporaryFolder folder;
  const std::string good = small(folder);
  const std::size_t first = kHeader + 2 * kEntry, second = first + 64;
  const auto written = [&](std::string bytes) {
    write_bytes(folder / "tried.maki", bytes);
    return folder / "tried.maki";
  };
  // A section is changed and the trailer forged to match: its own checksum tells.
  for (const std::size_t at : {first, first + 4, second, second + 69}) {
    std::string bytes = good;
    bytes[at] ^= 4;
    const ContainerReader file(written(rehashed(bytes, 2)));
    REQUIRE(contains(error_message<CheckpointError>([&] { file.verify(); }), "damaged"));
    const char* const changed = at < second ? "one" : "two";
    std::vector<std::byte> into(file.length(changed));
    REQUIRE(contains(error_message<CheckpointError>([&] { file.read(changed); }), "damaged"));
    REQUIRE(contains(error_message<CheckpointError>([&] { file.read(changed, into); }), "damaged"));
    REQUIRE(file.read(at < second ? "two" : "one") == (at < second ? std::string(70, 'b') : "first"));
  }
  // The trailer itself is changed: every section can be read, and verify() fails.
  for (std::size_t at = good.size() - kTrailer; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] ^= 4;
    const ContainerReader file(written(bytes));
    REQUIRE(file.read("one") == "first");
    REQUIRE(contains(error_message<CheckpointError>([&] { file.verify(); }), "damaged"));
  }
}

TEST_CASE("a forged file size in the header is rejected on opening, even with valid checksums") {
  const TemporaryFolder folder;
  const std::string good = small(folder);
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{80}, std::uint64_t{good.size() - 64}, std::uint64_t{good.size() - 1},
        std::uint64_t{good.size() + 1}, std::uint64_t{good.size() + 64}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    std::string bytes = good;
    store(bytes, 16, size);
    write_bytes(folder / "forged.maki", rehashed(bytes, 2));
    INFO(size);
    const std::string said =
        error_message<CheckpointError>([&] { const ContainerReader file(folder / "forged.maki"); });
    REQUIRE(contains(said, "forged.maki"));
    REQUIRE(contains(said, std::to_string(size)));
  }
}

TEST_CASE("a forged table with valid checksums is rejected before memory is allocated") {
  const TemporaryFolder folder;
  const std::string good = small(folder);
  REQUIRE(rehashed(good, 2) == good);  // rehashed() computes the checksums that the writer does
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

TEST_CASE("a length that makes an offset overflow is rejected") {
  const TemporaryFolder folder;
  const std::string good = small(folder);
  // Modulo 2^64, the first section ends where the last entry of the table begins; the second continues from there.
  std::string bytes = good;
  store(bytes, kHeader + 40, ~std::uint64_t{0} - 63);
  store(bytes, kHeader + kEntry + 32, std::uint64_t{kHeader + kEntry});
  store(bytes, kHeader + kEntry + 40, std::uint64_t{good.size() - kTrailer - kHeader - kEntry});
  write_bytes(folder / "forged.maki", rehashed(bytes, 2));
  REQUIRE(
      contains(error_message<CheckpointError>([&] { const ContainerReader file(folder / "forged.maki"); }), "table"));
}

TEST_CASE("opening finds every flipped byte of header and table, and every truncation and extension") {
  const TemporaryFolder folder;
  const std::string good = small(folder);
  const auto require_closed = [&](const std::string& bytes) {
    write_bytes(folder / "tried.maki", bytes);
    REQUIRE(contains(error_message<CheckpointError>([&] { const ContainerReader file(folder / "tried.maki"); }),
                     "tried.maki"));
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

TEST_CASE("sections whose order differs from the table are rejected, though every checksum matches") {
  const TemporaryFolder folder;
  std::string bytes = write(folder, {{"one", "first"}, {"two", "other"}, {"three", "third"}});
  REQUIRE(rehashed(bytes, 3) == bytes);
  // Swaps offset, length and checksum of the first two sections, but not their names.
  std::swap_ranges(bytes.begin() + kHeader + 32, bytes.begin() + kHeader + 64, bytes.begin() + kHeader + kEntry + 32);
  require_refused(folder, rehashed(bytes, 3));
}

TEST_CASE("two sections with the same name are rejected") {
  const TemporaryFolder folder;
  std::string bytes = small(folder);
  std::memcpy(bytes.data() + kHeader + kEntry, bytes.data() + kHeader, 32);
  REQUIRE_THAT(refusal(folder, rehashed(bytes, 2)), ContainsSubstring("tried.maki: has two sections named one"));
}

TEST_CASE("unused bytes and padding must be zero even if every checksum matches") {
  const TemporaryFolder folder;
  const std::string good = small(folder);
  const std::size_t sections = kHeader + 2 * kEntry, second = sections + 64;
  int zeros = 0;
  for (std::size_t at = 0; at < good.size() - kTrailer; ++at) {
    const std::size_t in_entry = at % kEntry;
    const bool in_header = at >= 32 && at < kHeader;
    const bool in_table = at >= kHeader && at < sections && (in_entry > 3 && in_entry < 32);
    const bool last_of_entry = at >= kHeader && at < sections && in_entry >= 56;
    const bool gap = (at >= sections + 5 && at < second) || at >= second + 70;
    if (!in_header && !in_table && !last_of_entry && !gap) continue;
    REQUIRE(good[at] == '\0');
    for (const char other : {'\1', 'x', '\x80'}) {
      std::string bytes = good;
      bytes[at] = other;
      INFO("byte " << at);
      const std::string forged = rehashed(bytes, 2);
      write_bytes(folder / "forged.maki", forged);
      // Rejected on opening, so that readers of only some sections are protected, too.
      REQUIRE(contains(error_message<CheckpointError>([&] { const ContainerReader file(folder / "forged.maki"); }),
                       "forged"));
    }
    ++zeros;
  }
  REQUIRE(zeros == 32 + 2 * (28 + 8) + (64 - 5) + (128 - 70));
}

TEST_CASE("a section name that is not printable ASCII is rejected, in writing and in reading") {
  const TemporaryFolder folder;
  const std::string good = small(folder);
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a\nb"), std::string("\x1b[2J"),
                                  std::string("\x7f"), std::string("\xff\xfe"), std::string("巻")}) {
    INFO("name of " << name.size() << " bytes");
    REQUIRE_FALSE(error_message<CheckpointError>([&] { write(folder, {{name, ""}}); }).empty());
    std::string bytes = good;
    std::memset(bytes.data() + kHeader, 0, 32);
    std::memcpy(bytes.data() + kHeader, name.data(), name.size());
    require_refused(folder, rehashed(bytes, 2));
  }
}
