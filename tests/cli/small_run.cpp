#include "tests/cli/small_run.h"

#include <fmt/format.h>

#include "autograd/core/philox.h"

namespace maki::tests {
namespace {

std::string text_of(const std::vector<std::string>& words, const std::string& space, const std::string& stop) {
  const RandomStream stream(3, RandomPurpose::test);
  std::string text;
  for (std::uint64_t i = 0; i < 900; ++i) {
    text += words[stream.below(i, words.size())];
    text += i % 9 == 8 ? stop : space;
  }
  return text;
}

}  // namespace

std::string small_text() {
  return text_of({"the", "maki", "reel", "unrolls", "slowly", "and", "a", "tape", "keeps", "every", "step"}, " ",
                 ".\n");
}
std::string small_japanese_text() {
  return text_of({"吾輩は", "猫で", "ある", "名前は", "まだ", "無い", "巻物を", "ひらく", "山と", "川の", "話"}, "",
                 "。\n");
}

std::string checkpoint(const std::string& run, int step) {
  return fmt::format("{}/checkpoints/step-{:08}.maki", run, step);
}

}  // namespace maki::tests
