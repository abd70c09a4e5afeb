// No damaged checkpoint is used, whatever became of which byte.
#include "data/io/error.h"
#include "tests/train/small_checkpoint.h"
#include "train/run/verified_checkpoint.h"

using namespace maki;
using namespace maki::tests;

namespace {

class Damaged {
 public:
  Damaged() : good_(read_bytes(write_smallest(folder_ / "good"))) {}
  const std::string& good() const { return good_; }
  /// A checkpoint of the same sizes with other numbers.
  std::string other() {
    Config config = smallest_config();
    config.seed = 7;
    return read_bytes(write_smallest(folder_ / "other", {}, config));
  }
  /// Whether a checkpoint with these bytes is refused.
  bool refused(const std::string& bytes) {
    const std::string path = folder_.write("damaged", bytes);
    return !error_message<CheckpointError>([&] { VerifiedCheckpoint{path}; }).empty();
  }

 private:
  TemporaryFolder folder_;
  std::string good_;
};

}  // namespace

TEST_CASE("a checkpoint with any byte altered is refused") {
  Damaged damaged;
  REQUIRE_FALSE(damaged.refused(damaged.good()));
  std::string bytes = damaged.good();
  for (char& byte : bytes) {
    const char before = byte;
    for (const int mask : {0x01, 0x80, 0xff}) {
      byte = static_cast<char>(before ^ mask);
      INFO("byte " << &byte - bytes.data() << " with " << mask);
      REQUIRE(damaged.refused(bytes));
    }
    byte = before;
  }
}

TEST_CASE("a checkpoint that is cut, extended or spliced from two is refused") {
  Damaged damaged;
  const std::string& good = damaged.good();
  const std::string other = damaged.other();
  REQUIRE_FALSE(damaged.refused(other));
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO("the first " << size << " bytes");
    REQUIRE(damaged.refused(good.substr(0, size)));
    const std::string spliced = good.substr(0, size) + other.substr(std::min(size, other.size()));
    if (spliced != good && spliced != other) REQUIRE(damaged.refused(spliced));
  }
  for (std::size_t more = 1; more <= 64; ++more) {
    REQUIRE(damaged.refused(good + std::string(more, '\0')));
    REQUIRE(damaged.refused(good + good.substr(0, more)));
  }
}
