#include "data/tokenizer.h"

#include <algorithm>
#include <set>

#include "data/error.h"
#include "data/hash.h"
#include "data/utf8.h"

namespace maki {
namespace {

// Saved form: a line with kind and version, then for "char" the characters of the vocabulary, ascending, as UTF-8.
constexpr std::string_view kByteHeader = "maki byte tokenizer 1\n", kCharHeader = "maki char tokenizer 1\n";

void check_id(std::int32_t id, std::int64_t vocab_size) {
  check<CorpusError>(id >= 0 && id < vocab_size, "tokenizer: ids are in [0, {}); got {}", vocab_size, id);
}

// "a (U+0061), b (U+0062) and 3 more"
std::string describe(const std::set<char32_t>& characters) {
  constexpr std::size_t kMost = 8;
  std::string text;
  std::size_t n = 0;
  for (const char32_t c : characters) {
    if (n == kMost) return text + fmt::format(" and {} more", characters.size() - kMost);
    text += (n++ == 0 ? "" : ", ") + describe_code_point(c);
  }
  return text;
}

}  // namespace

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += bytes(id);
  return text;
}

std::string Tokenizer::hash() const { return hash_hex(save()); }

ByteTokenizer::ByteTokenizer() {
  for (int i = 0; i < 256; ++i) all_ += static_cast<char>(i);
}
std::vector<std::int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids(text.size());
  std::ranges::transform(text, ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return ids;
}
std::string_view ByteTokenizer::bytes(std::int32_t id) const {
  check_id(id, 256);
  return std::string_view(all_).substr(static_cast<std::size_t>(id), 1);
}
std::string ByteTokenizer::save() const { return std::string(kByteHeader); }

CharTokenizer::CharTokenizer(std::string_view text) {
  while (!text.empty()) {
    const char32_t c = next_code_point(text);
    if (c >= ids_.size()) ids_.resize(c + 1, -1);
    ids_[c] = 0;
  }
  for (char32_t c = 0; c < ids_.size(); ++c) {
    if (ids_[c] < 0) continue;
    ids_[c] = static_cast<std::int32_t>(ends_.size());
    append_utf8(characters_, c);
    ends_.push_back(static_cast<std::uint32_t>(characters_.size()));
  }
}

std::vector<std::int32_t> CharTokenizer::encode(std::string_view text) const {
  const auto bad = invalid_utf8(text);
  check<CorpusError>(!bad, "tokenizer: the text must be UTF-8; byte {} is not", bad.value_or(0));
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(count_code_points(text)));
  std::set<char32_t> unknown;
  while (!text.empty()) {
    const char32_t c = next_code_point(text);
    const std::int32_t id = c < ids_.size() ? ids_[c] : -1;
    if (id < 0) {
      unknown.insert(c);
    } else {
      ids.push_back(id);
    }
  }
  check<CorpusError>(unknown.empty(), "tokenizer: the vocabulary has {} characters and these are not among them: {}",
                     vocab_size(), describe(unknown));
  return ids;
}

std::string_view CharTokenizer::bytes(std::int32_t id) const {
  check_id(id, vocab_size());
  const auto i = static_cast<std::size_t>(id);
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(characters_).substr(begin, ends_[i] - begin);
}

std::string CharTokenizer::save() const { return std::string(kCharHeader) + characters_; }

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, std::string_view text) {
  if (kind == "byte") return std::make_unique<ByteTokenizer>();
  check<CorpusError>(kind == "char", "tokenizer: must be char or byte; got {}", kind);
  return std::make_unique<CharTokenizer>(text);
}

std::unique_ptr<Tokenizer> load_tokenizer(std::string_view saved) {
  if (saved == kByteHeader) return std::make_unique<ByteTokenizer>();
  check<CorpusError>(saved.starts_with(kCharHeader),
                     "tokenizer: the saved form is of a kind or version this build does not know");
  const std::string_view characters = saved.substr(kCharHeader.size());
  check<CorpusError>(!characters.empty() && !invalid_utf8(characters), "tokenizer: the saved vocabulary is damaged");
  auto tokenizer = std::make_unique<CharTokenizer>(characters);
  check<CorpusError>(tokenizer->save() == saved, "tokenizer: the saved vocabulary is not in ascending order");
  return tokenizer;
}

}  // namespace maki
