// The storage pool: how much it keeps while shapes change, what it does when the system refuses memory, and how large
// blocks are aligned.
#include "autograd/core/storage.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "autograd/core/philox.h"
#include "tests/catch.h"

using namespace maki;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::int64_t address_space() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// Lets the process map at most `bytes` more than it has mapped so far.
class AddressLimit {
 public:
  explicit AddressLimit(std::int64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(address_space() + bytes);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

// The allocations of one training step on a batch of `rows` rows: activations accumulate, then backward frees them one
// by one while it allocates gradients and scratch.
void ragged_step(std::int64_t rows) {
  std::vector<Storage> activations;
  for (const std::int64_t width : {3072, 1024, 1024, 4096, 4096, 1024, 8192}) {
    for (int layer = 0; layer < 4; ++layer) activations.emplace_back(rows * width);
  }
  while (!activations.empty()) {
    const Storage gradient(rows * 4096), scratch(rows * 1024);
    activations.pop_back();
  }
}

}  // namespace

TEST_CASE("when shapes change at every step the pool reserves at most 1.5 times the peak in use") {
  storage_pool::trim();
  const auto before = storage_pool::statistics();
  storage_pool::reset_peak();
  const RandomStream stream(1, RandomPurpose::test);
  std::int64_t max_reserved = 0;
  for (std::uint64_t step = 0; step < 300; ++step) {
    ragged_step(64 + static_cast<std::int64_t>(stream.below(step, 1200)));
    max_reserved = std::max(max_reserved, storage_pool::statistics().bytes_reserved - before.bytes_reserved);
  }
  const std::int64_t peak = storage_pool::statistics().peak_bytes - before.bytes_in_use;
  INFO("peak " << peak / kMiB << " MiB, reserved " << max_reserved / kMiB << " MiB");
  REQUIRE(peak > 100 * kMiB);
  REQUIRE(2 * max_reserved <= 3 * peak);
}

TEST_CASE("with the same shapes at every step the pool takes no memory from the system after the first") {
  ragged_step(300);
  const std::int64_t reserved = storage_pool::statistics().bytes_reserved;
  for (int step = 0; step < 10; ++step) ragged_step(300);
  REQUIRE(storage_pool::statistics().bytes_reserved == reserved);
}

TEST_CASE("free blocks are kept for later: of what was once in use at the same time, and 8 MiB in any case") {
  const auto kept = [] {
    const storage_pool::Statistics now = storage_pool::statistics();
    return now.bytes_reserved - now.bytes_in_use;
  };
  storage_pool::trim();
  REQUIRE(kept() == 0);
  { const Storage large(24 * kMiB); }
  const Storage held(8 * kMiB);
  REQUIRE(kept() == 24 * kMiB);
  storage_pool::trim();
  REQUIRE(kept() == 0);
  // One after the other, of sizes that cannot use each other's blocks: no more than 1 MiB of them is in use at a time.
  std::int64_t all = 0;
  for (const std::int64_t kib : {1024, 960, 896, 832, 768, 704, 640, 576, 512, 480, 448}) {
    const Storage block(kib << 10);
    all += kib << 10;
  }
  REQUIRE(kept() == all);
}

TEST_CASE("blocks of 4 MiB and more begin at a huge page") {
  for (const std::int64_t bytes : {4 * kMiB, 4 * kMiB + 1, 6 * kMiB, 31 * kMiB}) {
    const Storage block(bytes);
    INFO(bytes << " bytes");
    REQUIRE(reinterpret_cast<std::uintptr_t>(block.data()) % static_cast<std::uintptr_t>(2 * kMiB) == 0);
    block.data()[0] = block.data()[bytes - 1] = std::byte{1};
  }
}

TEST_CASE("a block of up to 512 bytes takes a multiple of 64, a larger one at most an eighth more than is asked for") {
  const auto taken = [](std::int64_t bytes) {
    const std::int64_t before = storage_pool::statistics().bytes_in_use;
    const Storage block(bytes);
    return storage_pool::statistics().bytes_in_use - before;
  };
  const std::pair<std::int64_t, std::int64_t> expected[] = {{0, 64},
                                                            {1, 64},
                                                            {64, 64},
                                                            {65, 128},
                                                            {320, 320},
                                                            {321, 384},
                                                            {512, 512},
                                                            {513, 576},
                                                            {576, 576},
                                                            {577, 640},
                                                            {961, 1024},
                                                            {1024, 1024},
                                                            {1025, 1152},
                                                            {1152, 1152},
                                                            {1153, 1280},
                                                            {2048, 2048},
                                                            {2049, 2304},
                                                            {8 * kMiB, 8 * kMiB},
                                                            {8 * kMiB + 1, 9 * kMiB}};
  // Twice: also where a block is used again, of which none is smaller than what is asked for.
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& [bytes, capacity] : expected) {
      INFO(bytes << " bytes");
      REQUIRE(taken(bytes) == capacity);
    }
  }
}

TEST_CASE("a block of impossible size is rejected") {
  REQUIRE_THROWS_WITH(Storage(-1), ContainsSubstring("bytes; got -1"));
  REQUIRE_THROWS_WITH(Storage(std::int64_t{1} << 62), ContainsSubstring("bytes; got 4611686018427387904"));
  REQUIRE_THROWS_AS(Storage(std::int64_t{1} << 60), OutOfMemoryError);
}

#if !defined(__SANITIZE_ADDRESS__)  // its shadow memory counts against the limit, too

TEST_CASE("when the system refuses memory, free blocks are returned to it and it is asked once more") {
  if (*MAKI_EMULATOR != '\0') {
    WARN("skipped: an emulator does not limit memory");
    return;
  }
  storage_pool::trim();
  { const Storage a(150 * kMiB), b(150 * kMiB); }
  const std::int64_t free = storage_pool::statistics().bytes_reserved;
  const AddressLimit limit(50 * kMiB);
  const Storage fits(130 * kMiB);  // only after a and b have been returned to the system
  fits.data()[0] = fits.data()[130 * kMiB - 1] = std::byte{1};
  REQUIRE(storage_pool::statistics().bytes_reserved < free);
  REQUIRE_THROWS_AS(Storage(400 * kMiB), OutOfMemoryError);
}

#endif
