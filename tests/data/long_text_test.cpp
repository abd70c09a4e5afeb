// A long text: the peak memory of reading and encoding it, and what is held afterwards.
#include <fmt/format.h>

#include "data/dataset/dataset.h"
#include "data/io/utf8.h"
#include "tests/catch.h"
#include "tests/data/allocations.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

namespace {

std::string many(const std::string& piece, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

struct Taken {
  double peak, kept;  // bytes per byte of text
};

Taken take(const std::vector<std::string>& sources, std::size_t bytes, const std::string& tokenizer) {
  start_peak();
  const Dataset data = make_dataset(load_corpus(sources), 0.1, 64, tokenizer);
  const std::int64_t peak = peak_bytes(), kept = held_bytes();
  REQUIRE(data.train.size() > 1'000'000);
  const auto per_byte = [&](std::int64_t taken) { return static_cast<double>(taken) / static_cast<double>(bytes); };
  return {per_byte(peak), per_byte(kept)};
}

}  // namespace

TEST_CASE("a text of 5 MB takes at most 3 bytes of memory per byte") {
  constexpr std::size_t kBytes = 5'000'000;
  std::string all_of_latin;  // more than 256 different characters of one or two bytes, so tokens take two bytes
  for (char32_t c = 0x20; c < 0x250; ++c) append_utf8(all_of_latin, c);
  struct Case {
    const char* name;
    std::string text;
    double peak, kept;
  };
  const TemporaryFolder folder;
  for (const Case& c :
       {Case{"ASCII", many("The quick brown fox jumps over the lazy dog.\n", kBytes), 2.1, 1.1},
        Case{"Japanese", many("吾輩は猫である。名前はまだ無い。\n", kBytes), 1.5, 0.4},
        Case{"mostly ASCII, many characters", all_of_latin + many("plain text ", kBytes), 3.01, 2.01}}) {
    const Taken one = take({folder.write(c.name, c.text)}, c.text.size(), "char");
    INFO(c.name << ": " << one.peak << " at most, " << one.kept << " kept, in bytes per byte of text");
    CHECK(one.peak <= c.peak);
    CHECK(one.kept <= c.kept);
  }
  const std::string text = many("吾輩は猫である。\n", kBytes);
  std::vector<std::string> files;
  for (int i = 0; i < 10; ++i) files.push_back(folder.write(fmt::format("part-{}", i), text.substr(0, 25 * 20'000)));
  const Taken ten = take(files, 10 * 25 * 20'000, "byte");
  CHECK(ten.peak <= 2.1);
  CHECK(ten.kept <= 1.1);
}
