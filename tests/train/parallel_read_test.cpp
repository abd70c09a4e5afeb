// Reading with all threads: every piece once, used in order, and no error is lost.
#include "data/io/parallel_read.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "data/io/descriptor.h"
#include "data/io/mapping.h"
#include "tests/catch.h"
#include "tests/threads.h"
#include "tests/train/container_file.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("every piece is read once, and used once it was read, in order and by one thread at a time") {
  for (const int team : {1, 2, 3, 8}) {
    const ThreadsScope scope(team);
    for (const std::int64_t pieces : {0, 1, 2, 7, 200}) {
      INFO(team << " threads, " << pieces << " pieces");
      std::vector<std::atomic<int>> reads(static_cast<std::size_t>(pieces));
      std::vector<std::int64_t> used;
      std::atomic<int> inside = 0, overlaps = 0, unread = 0;
      // The first piece arrives late, if there is another thread that can overtake this one.
      const auto read = [&](std::int64_t i) {
        for (int tries = 0; i == 0 && team > 1 && pieces > 1 && reads[1] == 0 && tries < 100'000; ++tries)
          std::this_thread::yield();
        ++reads[static_cast<std::size_t>(i)];
      };
      read_in_parallel(pieces, read, [&](std::int64_t i) {
        if (++inside != 1) ++overlaps;
        if (reads[static_cast<std::size_t>(i)] != 1) ++unread;
        used.push_back(i);
        --inside;
      });
      REQUIRE(overlaps == 0);
      REQUIRE(unread == 0);
      REQUIRE(std::ssize(used) == pieces);
      for (std::int64_t i = 0; i < pieces; ++i) REQUIRE(used[static_cast<std::size_t>(i)] == i);
      for (const auto& times : reads) REQUIRE(times == 1);
    }
  }
}

TEST_CASE("an error in either function ends the reading and reaches the caller") {
  for (const int team : {1, 4}) {
    const ThreadsScope scope(team);
    const auto nothing = [](std::int64_t) {};
    const auto fails_at_5 = [](std::int64_t i) {
      if (i == 5) throw std::runtime_error("piece 5");
    };
    REQUIRE(error_message<std::runtime_error>([&] { read_in_parallel(9, fails_at_5, nothing); }) == "piece 5");
    REQUIRE(error_message<std::runtime_error>([&] { read_in_parallel(9, nothing, fails_at_5); }) == "piece 5");
    std::atomic<int> reads = 0;
    const auto fails_at_once = [&](std::int64_t) {
      ++reads;
      throw std::runtime_error("all");
    };
    REQUIRE(error_message<std::runtime_error>([&] { read_in_parallel(1000, fails_at_once, nothing); }) == "all");
    REQUIRE(reads <= team);
  }
}

TEST_CASE("no piece is used after the use of one has failed, even if it is read later") {
  const ThreadsScope scope(2);
  std::atomic<bool> other_reads = false, failing = false;
  std::atomic<int> late = 0;
  std::vector<std::int64_t> used;
  const auto wait_for = [](const std::atomic<bool>& flag, int most) {
    for (int waited = 0; !flag && waited < most; ++waited) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto read = [&](std::int64_t i) {
    if (i == 0) return wait_for(other_reads, 2000);  // in vain on a busy machine, where a team may be one thread
    other_reads = true;
    wait_for(failing, 60'000);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the other thread has left use()
    late += failing ? 1 : 0;
  };
  const auto use = [&](std::int64_t i) {
    used.push_back(i);
    failing = true;
    throw std::runtime_error("piece " + std::to_string(i));
  };
  REQUIRE(error_message<std::runtime_error>([&] { read_in_parallel(9, read, use); }) == "piece 0");
  REQUIRE(used == std::vector<std::int64_t>{0});
  REQUIRE(late == (other_reads ? 1 : 0));
}

TEST_CASE("a long section is read in pieces that follow each other, and a damaged byte in any of them is found") {
  const TemporaryFolder folder;
  std::string content(7'000'003, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i % 251);
  const std::string bytes = write(folder, {{"long", content}});
  const ThreadsScope scope(3);
  const auto read = [&](std::string& joined) {
    std::string whole(content.size(), '\0');
    const auto use = [&](Bytes piece) { joined.append(reinterpret_cast<const char*>(piece.data()), piece.size()); };
    ContainerReader(folder / "written.maki").read("long", std::as_writable_bytes(std::span(whole)), use);
    return whole;
  };
  std::string joined;
  REQUIRE(read(joined) == content);
  REQUIRE(joined == content);
  for (const std::size_t at : {std::size_t{0}, std::size_t{2'500'000}, content.size() - 1}) {
    std::string damaged = bytes;
    damaged[kHeader + kEntry + at] ^= 1;
    write_bytes(folder / "written.maki", damaged);
    REQUIRE(contains(error_message<CheckpointError>([&] { read(joined); }), "checksum mismatch"));
  }
}

TEST_CASE("a mapped section has the bytes of the file, also after the file is gone, and changes stay in the process") {
  const TemporaryFolder folder;
  const std::string content(5'000'000, 'c'), path = folder / "written.maki";
  const std::string bytes = write(folder, {{"short", "s"}, {"long", content}, {"none", ""}});
  std::shared_ptr<const Mapping> mapping, again;
  std::string joined;
  {
    const ContainerReader file(path);
    REQUIRE(file.map("none") == nullptr);
    const auto use = [&](Bytes piece) { joined.append(reinterpret_cast<const char*>(piece.data()), piece.size()); };
    mapping = file.map("long", use);
    again = file.map("long");
    REQUIRE(mapping != nullptr);
  }
  REQUIRE(joined == content);
  REQUIRE(std::ranges::equal(mapping->bytes(), text_bytes(content)));
  mapping->bytes()[7] = std::byte{'d'};
  REQUIRE(again->bytes()[7] == std::byte{'c'});
  REQUIRE(read_bytes(path) == bytes);
  std::filesystem::remove(path);
  REQUIRE(mapping->bytes().back() == std::byte{'c'});

  std::string damaged = bytes;
  damaged[damaged.size() - kTrailer - 100'000] ^= 1;
  write_bytes(path, damaged);
  REQUIRE(contains(error_message<CheckpointError>([&] { ContainerReader(path).map("long"); }), "checksum mismatch"));
}

#if defined(__linux__)
TEST_CASE("pages of a file that has become shorter are an error when they are loaded, and not a signal") {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which not all headers have
  const TemporaryFolder folder;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::string path = folder.write("file", std::string(4 * page, 'x'));
  const Descriptor file = open_regular(posix_file_system(), path, throw_as<CheckpointError>);
  const auto mapped = [&](std::size_t offset) {
    return Mapping::create(file.number(), offset, 4 * page - offset, Mapping::Access::read);
  };
  const auto whole = mapped(0), part = mapped(100);  // the latter begins within a page
  REQUIRE((whole != nullptr && part != nullptr));
  std::filesystem::resize_file(path, 2 * page);
  // A kernel before 5.14 does not know this call, and an emulator ignores it.
  if (madvise(whole->bytes().data() + 3 * page, page, kPopulateRead) == 0 || errno != EFAULT) return;
  for (const auto& [mapping, end] : {std::pair{whole, 2 * page}, {part, 2 * page - 100}}) {
    REQUIRE(mapping->load(0, end) == 0);
    REQUIRE(mapping->load(0, end + 1) == EIO);
    REQUIRE(mapping->load(end, end + page) == EIO);
    REQUIRE(mapping->load(end + page, end + page + 1) == EIO);
  }
}
#endif
