// Every fuzz target with a few thousand inputs that are the same in every run. scripts/fuzz.sh tries many more.
#include "tests/fuzz/fuzz.h"

#include <set>

#include "autograd/core/philox.h"
#include "autograd/core/storage.h"
#include "tests/catch.h"

using namespace maki;
using namespace maki::fuzz;

namespace {

// Changes bytes, or removes, repeats or inserts a few.
std::string mutate(std::string bytes, const RandomStream& stream, std::uint64_t at) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(stream.below(at++, n)); };
  for (std::size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t place = below(bytes.size()), count = 1 + below(8);
    switch (below(5)) {
      case 0:
        bytes[place] = static_cast<char>(below(256));
        break;
      case 1:
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << below(8)));
        break;
      case 2:
        bytes.erase(place, count);
        break;
      case 3:
        bytes.insert(place, bytes.substr(below(bytes.size()), count));
        break;
      default:
        bytes.resize(place);
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("every fuzz target accepts its seeds and survives changes of them", "[fuzz_test]") {
  constexpr std::uint64_t kChanges = 60, kNumbers = 64;
  for (const Target& target : targets()) {
    INFO(target.name);
    std::uint64_t number = 0;
    for (const std::string& seed : target.seeds()) {
      INFO(seed.substr(0, 60));
      CHECK(try_input(target, seed) == Outcome::accepted);
      const RandomStream stream(++number, RandomPurpose::shuffle);
      for (std::uint64_t i = 0; i < kChanges; ++i) try_input(target, mutate(seed, stream, i * kNumbers));
    }
    CHECK(number > 0);
    try_input(target, "");
  }
}

TEST_CASE("the names of fuzz targets are distinct", "[fuzz_test]") {
  std::set<std::string> names;
  for (const Target& target : targets()) names.insert(target.name);
  CHECK(names.size() == targets().size());
}

TEST_CASE("a reader that throws something else, or needs too much memory, is found", "[fuzz_test]") {
  const auto nothing = [] { return std::vector<std::string>(); };
  const auto any = [](const Error&) { return true; };
  const auto none = [](const Error&) { return false; };
  const Target foreign{"a", [](const std::string&) { throw std::out_of_range("at"); }, any, nothing};
  CHECK_THROWS_AS(try_input(foreign, ""), std::logic_error);
  const Target other{"b", [](const std::string&) { fail("a rule"); }, none, nothing};
  CHECK_THROWS_AS(try_input(other, ""), std::logic_error);
  const Target wordy{"c", [](const std::string& bytes) { throw Error(bytes); }, any, nothing};
  CHECK(try_input(wordy, "short") == Outcome::rejected);
  CHECK_THROWS_AS(try_input(wordy, std::string(3000, 'a')), std::logic_error);
  CHECK_THROWS_AS(try_input(wordy, ""), std::logic_error);
  const Target hungry{"d", [](const std::string& bytes) { std::vector<char>((16 << 20) + 9 * bytes.size()); }, any,
                      nothing};
  CHECK_THROWS_AS(try_input(hungry, "1000000"), std::logic_error);
  const Target tensors{"e", [](const std::string& bytes) { Storage((16 << 20) + 9 * std::ssize(bytes)); }, any,
                       nothing};
  CHECK_THROWS_AS(try_input(tensors, "1000000"), std::logic_error);
}
