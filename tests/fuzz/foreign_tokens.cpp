// Token files of nanoGPT and llm.c.
#include "data/dataset/foreign_tokens.h"

#include "data/io/error.h"
#include "tests/fuzz/targets.h"

namespace maki::fuzz {
namespace {

void read_as_foreign_tokens(const std::string& bytes) {
  const auto file = open_foreign_tokens({.train = {scratch_file("train.bin", bytes)}, .val = {}});
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer("byte", "");
  const auto known = with_tokenizer(*file, tokenizer, 0.25);
  tokenizer->decode(known->train);
  tokenizer->decode(known->val);
}

// 256 numbers of 32 bits, then ids.
std::string llm_c_file(std::int32_t magic, std::int32_t version, std::size_t width) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = 8;
  std::string bytes(reinterpret_cast<const char*>(header.data()), header.size() * sizeof(std::int32_t));
  for (char id = 0; id < 8; ++id) (bytes += id).append(width - 1, '\0');
  return bytes;
}

std::vector<std::string> foreign_tokens_seeds() {
  return {std::string("t\0h\0e\0 \0c\0a\0t\0.\0", 16), llm_c_file(20240520, 1, 2), llm_c_file(20240801, 7, 4)};
}

}  // namespace

const Target kForeignTokens = {"foreign_tokens", read_as_foreign_tokens, is<CorpusError>, foreign_tokens_seeds};

}  // namespace maki::fuzz
