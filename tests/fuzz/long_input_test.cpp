// Files of which a small part is repeated very often: the memory and the time of their readers are in proportion to the
// size of the file.
#include <algorithm>
#include <ctime>
#include <fmt/format.h>

#include "autograd/core/philox.h"
#include "tests/catch.h"
#include "tests/fuzz/fuzz.h"

using namespace maki;
using namespace maki::fuzz;

namespace {

constexpr std::size_t kSize = 2'000'000;
constexpr double kSecondsPerByte = 1e-7;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The input with a part of it repeated in its place, so often that there are kSize bytes.
std::string lengthened(const std::string& input, std::size_t begin, std::size_t count) {
  const std::string part = input.substr(begin, count);
  std::string longer = input.substr(0, begin);
  while (longer.size() < kSize) longer += part;
  return longer + input.substr(begin);
}

// Calls use(target, input) with each seed of each target, lengthened in `parts` places. Returns their number.
template <class Use>
int with_long_inputs(const Target& target, std::uint64_t parts, const Use& use) {
  std::uint64_t number = 0;
  int tried = 0;
  for (const std::string& seed : target.seeds()) {
    const RandomStream stream(++number, RandomPurpose::test, target.name);
    for (std::uint64_t i = 0; i < parts && !seed.empty(); ++i, ++tried) {
      const std::size_t begin = stream.below(2 * i, seed.size());
      const std::size_t count = 1 + stream.below(2 * i + 1, std::min<std::size_t>(seed.size() - begin, 200));
      INFO(target.name << ", seed " << number << ": bytes " << begin << " to " << begin + count << " repeated");
      use(lengthened(seed, begin, count));
    }
  }
  return tried;
}

}  // namespace

TEST_CASE("a part of a file that is repeated very often needs memory in proportion", "[fuzz_test]") {
  for (const Target& target : targets()) {
    with_long_inputs(target, 4, [&](const std::string& input) { CHECK_NOTHROW(try_input(target, input)); });
  }
}

// Hidden, because it measures; scripts/check.sh fuzz runs it.
TEST_CASE("no reader takes more than a second of CPU time per 10 MB, whatever is repeated", "[.long_input]") {
  for (const Target& target : targets()) {
    double longest = 0;
    const int tried = with_long_inputs(target, 100, [&](const std::string& input) {
      const double before = cpu_seconds();
      CHECK_NOTHROW(try_input(target, input));
      const double seconds = cpu_seconds() - before;
      longest = std::max(longest, seconds / static_cast<double>(input.size()));
      CHECK(seconds <= kSecondsPerByte * static_cast<double>(input.size()));
    });
    fmt::print("{}: {} inputs tried, at most {:.2g} s per 10 MB\n", target.name, tried, 1e7 * longest);
  }
}
