#include "data/io/error.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/vocabularies.h"

namespace maki::fuzz {
namespace {

void read_as_tiktoken(const std::string& bytes) { use_tokenizer(*read_tokenizer(scratch_file("a.tiktoken", bytes))); }

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 3; ++i)
      bits = bits << 8 | (i < bytes.size() ? static_cast<std::uint8_t>(bytes[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::vector<std::string> tiktoken_seeds() {
  const std::unique_ptr<Tokenizer> tokenizer = small_bpe();
  std::string text;
  for (std::int32_t id = 0; id + 1 < tokenizer->vocab_size(); ++id)
    text += fmt::format("{} {}\n", base64(tokenizer->bytes(id)), id);
  return {text};
}

}  // namespace

const Target kTiktoken = {"tiktoken", read_as_tiktoken, is<CorpusError>, tiktoken_seeds};

}  // namespace maki::fuzz
