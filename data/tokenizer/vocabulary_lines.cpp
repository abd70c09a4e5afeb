// Vocabularies in text files: merges.txt and .tiktoken.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "autograd/core/check.h"
#include "data/io/error.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/normalized_tokenizer.h"
#include "data/tokenizer/vocabulary_text.h"

namespace maki {
namespace {

// Removes the first line of the text and returns it without its end.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// The bytes of canonical base64; empty if it is not.
std::string from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return "";
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int digit = i + padding < text.size() ? base64_digit(text[i]) : 0;
    if (digit < 0) return "";
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 0xFF);
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

// What is known of a published vocabulary by its number of ranks: those of GPT-2, GPT-4, Llama 3, Qwen, GPT-4o and
// Llama 4.
struct Published {
  std::size_t ranks = 0;  // of no published one
  const char* rule = "gpt2";
  bool end_of_text = false;   // as the next id
  bool whole_pieces = false;  // see all_merges()
  Normalization normalization = Normalization::none;
};
constexpr Published kPublished[] = {{50'256, "gpt2", true},
                                    {100'256, "cl100k"},
                                    {128'000, "cl100k", false, true},
                                    {151'643, "qwen2", true, false, Normalization::nfc},
                                    {199'998, "o200k"},
                                    {200'000, "o200k"}};

Published published_with(std::size_t ranks) {
  const auto* const known = std::ranges::find(kPublished, ranks, &Published::ranks);
  return known == std::end(kPublished) ? Published() : *known;
}

// A merge for every token of two bytes or more, in order of rank: the two parts that the merges before it make of it.
std::vector<BpeMerge> merges_by_rank(const TokenList& tokens) {
  const TokenIndex index(tokens);
  std::array<std::int32_t, 256> bytes{};
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    const char text = static_cast<char>(byte);
    bytes[byte] = index.find(std::string_view(&text, 1));
    check<CorpusError>(bytes[byte] >= 0, "tokenizer: each of the 256 bytes must have a rank; 0x{:02X} has none", byte);
  }
  BpeEncoder encoder(bytes);
  std::vector<BpeMerge> merges;
  std::vector<std::int32_t> parts;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() == 1) continue;
    parts.clear();
    encoder.encode(tokens[id], parts);
    check<CorpusError>(parts.size() == 2,
                       "tokenizer: the token of rank {} must consist of two tokens of lower rank; it consists of {}",
                       id, parts.size());
    merges.push_back({parts[0], parts[1], static_cast<std::int32_t>(id)});
    encoder.add(merges.back());
  }
  return merges;
}

// For every two tokens that make up a token, a merge, in order of its rank: what tiktoken joins. Llama 3 has a
// vocabulary whose tokens were not all learned together. Some are made of three tokens of lower rank, and occur as
// whole pieces alone. The order of the merges of one token is that in which transformers writes them.
std::vector<BpeMerge> all_merges(const TokenList& tokens) {
  constexpr std::size_t kLongest = 256;       // in bytes: twice that of Llama 3, and all pairs of parts are looked up
  constexpr std::size_t kMergesPerToken = 8;  // on average, four times those of Llama 3
  const TokenIndex index(tokens);
  std::vector<BpeMerge> merges;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    check<CorpusError>(token.size() <= kLongest,
                       "tokenizer: of {} tokens, each may have at most {} bytes; that of rank {} has {}", tokens.size(),
                       kLongest, id, token.size());
    const auto first = static_cast<std::ptrdiff_t>(merges.size());
    for (std::size_t at = 1; at < token.size(); ++at) {
      const std::int32_t left = index.find(token.substr(0, at)), right = index.find(token.substr(at));
      if (left >= 0 && right >= 0) merges.push_back({left, right, static_cast<std::int32_t>(id)});
    }
    check<CorpusError>(merges.size() <= kMergesPerToken * tokens.size(),
                       "tokenizer: {} tokens may be made up of two others in at most {} ways; there are more",
                       tokens.size(), kMergesPerToken * tokens.size());
    std::ranges::sort(merges.begin() + first, merges.end(), {},
                      [](const BpeMerge& merge) { return std::pair(merge.left, merge.right); });
  }
  return merges;
}

}  // namespace

void read_merges_text(std::string_view text, VocabularyText& vocabulary) {
  if (text.starts_with("#version")) next_line(text);
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (!line.empty()) vocabulary.merges.add(line);
  }
}

std::unique_ptr<Tokenizer> read_tiktoken(std::string_view text) {
  check<CorpusError>(
      !text.starts_with('\n'),
      "tokenizer: the file must begin with a token in base64; it begins like a SentencePiece model, which "
      "maki does not read; use a tokenizer.json of byte-level BPE, if the model has one");
  BpeParts parts;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.empty() && text.empty()) break;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string bytes = from_base64(line.substr(0, space));
    const std::string_view rank = line.substr(std::min(space + 1, line.size()));
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), value);
    const std::size_t expected = parts.tokens.size();
    check<CorpusError>(!bytes.empty() && error == std::errc() && end == rank.data() + rank.size() && value == expected,
                       "tokenizer: line {} must be a token in base64, a space and the rank {}; got {}", expected + 1,
                       expected, truncate_for_message(line));
    parts.tokens.add(bytes);
  }
  const Published known = published_with(parts.tokens.size());
  parts.rule = known.rule;
  parts.whole_pieces = known.whole_pieces;
  parts.merges = known.whole_pieces ? all_merges(parts.tokens) : merges_by_rank(parts.tokens);
  if (known.end_of_text) {
    parts.added.push_back({.id = static_cast<std::int32_t>(parts.tokens.size())});
    parts.tokens.add(kEndOfText);
  }
  return with_normalization(std::make_unique<BpeTokenizer>(std::move(parts)), known.normalization);
}

}  // namespace maki
