#include "data/tokenizer/tokenizer.h"

#include <algorithm>
#include <functional>

#include "data/text/error.h"
#include "data/text/hash.h"
#include "data/text/utf8.h"

namespace maki {
namespace {

// The saved form: a line with kind and version, followed, for "char", by the characters of the vocabulary in ascending
// order as UTF-8.
constexpr std::string_view kByteHeader = "maki byte tokenizer 1\n", kCharHeader = "maki char tokenizer 1\n";

void check_id(std::int32_t id, std::int64_t vocab_size) {
  check<CorpusError>(id >= 0 && id < vocab_size, "tokenizer: ids must be in [0, {}); got {}", vocab_size, id);
}

}  // namespace

std::string Tokenizer::decode(TokenSpan ids) const {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) text += bytes(ids[i]);
  return text;
}

void Tokenizer::encode(std::string_view text, Tokens& ids) const {
  constexpr std::size_t kBlock = 1 << 12;
  while (!text.empty()) {
    std::size_t size = std::min(kBlock, text.size());
    while (size < text.size() && is_continuation(text[size])) ++size;
    ids.append(encode(text.substr(0, size)));
    text.remove_prefix(size);
  }
}

std::string Tokenizer::hash() const { return hash128_hex(save()); }

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

std::size_t CharTokenizer::token_bound(std::string_view text) const {
  return static_cast<std::size_t>(count_code_points(text));
}

std::vector<std::int32_t> CharTokenizer::encode(std::string_view text) const {
  const auto bad = invalid_utf8(text);
  check<CorpusError>(!bad, "tokenizer: the text must be UTF-8; byte {} is not", bad.value_or(0));
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(count_code_points(text)));
  for (std::string_view left = text; !left.empty();) {
    const std::int32_t id = id_of(next_code_point(left));
    if (id < 0) throw CorpusError(unknown_sentence(vocab_size(), unknown(text)));
    ids.push_back(id);
  }
  return ids;
}

std::map<char32_t, std::int64_t> CharTokenizer::unknown(std::string_view text) const {
  std::map<char32_t, std::int64_t> counts;
  while (!text.empty()) {
    const char32_t c = next_code_point(text);
    if (id_of(c) < 0) ++counts[c];
  }
  return counts;
}

std::string unknown_sentence(std::int64_t vocab_size, const std::map<char32_t, std::int64_t>& unknown) {
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<char32_t, std::int64_t>> characters(unknown.begin(), unknown.end());
  std::ranges::stable_sort(characters, std::greater(), [](const auto& entry) { return entry.second; });
  std::string list;
  for (std::size_t i = 0; i < std::min(kMost, characters.size()); ++i) {
    const auto& [c, count] = characters[i];
    list += (i == 0 ? "" : ", ") + describe_code_point(c) + (count > 1 ? fmt::format(" {} times", count) : "");
  }
  if (characters.size() > kMost) list += fmt::format(" and {} more", characters.size() - kMost);
  return fmt::format("tokenizer: the vocabulary of {} characters lacks these: {}", vocab_size, list);
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
                     "tokenizer: the saved tokenizer has a kind or version that this version of maki does not know");
  const std::string_view characters = saved.substr(kCharHeader.size());
  check<CorpusError>(!characters.empty() && !invalid_utf8(characters), "tokenizer: the saved vocabulary is damaged");
  auto tokenizer = std::make_unique<CharTokenizer>(characters);
  check<CorpusError>(tokenizer->save() == saved, "tokenizer: the saved vocabulary is not in ascending order");
  return tokenizer;
}

}  // namespace maki
