#include "data/tokenizer/byte_tokenizer.h"

#include <algorithm>

#include "data/io/error.h"

namespace maki {
namespace {

std::unique_ptr<Tokenizer> make_byte(const TextToLearn& /*text*/, const TokenizerOptions& /*options*/) {
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> load_byte(std::string_view saved) {
  check<CorpusError>(saved.empty(), "tokenizer: the saved tokenizer is damaged: a byte tokenizer has no vocabulary");
  return std::make_unique<ByteTokenizer>();
}

}  // namespace

constinit const TokenizerKind kByteTokenizer = {
    "byte", "byte", "bytes", Vocabulary::bytes, "maki byte tokenizer 1\n", make_byte, load_byte};

ByteTokenizer::ByteTokenizer() {
  for (int i = 0; i < 256; ++i) all_ += static_cast<char>(i);
}
std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids(text.size());
  std::ranges::transform(text, ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return ids;
}
std::string_view ByteTokenizer::bytes(std::int32_t id) const {
  check_token_id(id, 256);
  return std::string_view(all_).substr(static_cast<std::size_t>(id), 1);
}
std::string ByteTokenizer::save_encoding() const { return std::string(kByteTokenizer.header); }

}  // namespace maki
