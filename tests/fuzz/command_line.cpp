// The words of a command line, with zero bytes between them. What they ask for is not done.
#include <fmt/ranges.h>
#include <sstream>

#include "tests/fuzz/targets.h"
#include "train/app/command.h"

namespace maki::fuzz {
namespace {

constexpr char kBetween = '\0';  // the only byte that no word can contain

void read_command_line(const std::string& bytes) {
  constexpr std::size_t kMostBytes = 128 << 10;  // of a word, on Linux
  check(bytes.size() <= kMostBytes, "words: must be at most {} bytes", kMostBytes);
  std::vector<std::string> words;
  std::istringstream rest(bytes);
  for (std::string word; std::getline(rest, word, kBetween);) words.push_back(word);
  parse_command_line(words);
}

std::vector<std::string> command_line_seeds() {
  const std::vector<std::string> lines[] = {
      {"train", "a.txt", "b", "--preset", "quickstart", "--lr=1e-3", "--no-bias", "--include", "*.txt", "-o", "runs/a"},
      {"train", "--resume", "runs/a", "--n_layer", "2", "-q"},
      {"plan", "@stories:1000", "--minutes", "10"},
      {"generate", "runs/a", "--prompt=", "--stop", ".", "--stop", "\n", "--temperature", "0.5", "--seed", "7"},
      {"fill", "runs/a", "--text", "[MASK]", "--special"},
      {"bench", "gemm", "64,64,\xe7\x8c\xab", "--threads", "2"},
      {"tokenizer", "train", "a.txt", "--out", "t", "--vocab-size", "300"},
      {"export", "runs/a", "--format", "gguf", "--out", "a", "--force"},
      {"help", "eval"},
      {"--completion", "bash"},
  };
  std::vector<std::string> seeds;
  for (const auto& words : lines) seeds.push_back(fmt::format("{}", fmt::join(words, std::string(1, kBetween))));
  return seeds;
}

}  // namespace

const Target kCommandLine = {"command_line", read_command_line, [](const Error&) { return true; }, command_line_seeds};

}  // namespace maki::fuzz
