// The saved form of a BPE tokenizer: lines of text, described in docs/formats.md.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "data/io/error.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/byte_characters.h"

namespace maki {
namespace {

void require(bool good) { check<CorpusError>(good, "tokenizer: the saved byte-pair encoding is damaged"); }

// Reads lines of fields that are separated by single spaces.
class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  // The text up to the given character, which is removed as well.
  std::string_view field(char end) {
    const std::size_t at = left_.find(end);
    require(at != std::string_view::npos);
    const std::string_view found = left_.substr(0, at);
    left_.remove_prefix(at + 1);
    return found;
  }
  std::int32_t number(char end) {
    const std::string_view text = field(end);
    std::int32_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && stop == text.data() + text.size() && value >= 0);
    return value;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
};

std::unique_ptr<Tokenizer> make_bpe(const TextToLearn& text, const TokenizerOptions& options) {
  return std::make_unique<BpeTokenizer>(learn_bpe(text, options.vocab_size));
}

// The letters of what an added token may have and a special token usually has not.
constexpr std::pair<char, bool AddedToken::*> kFlags[] = {{'a', &AddedToken::always},
                                                          {'l', &AddedToken::lstrip},
                                                          {'r', &AddedToken::rstrip},
                                                          {'w', &AddedToken::single_word},
                                                          {'n', &AddedToken::normalized}};

// s for a special token and o for another one, and the letters of its flags.
std::string flags_text(const AddedToken& token) {
  std::string text = token.special ? "s" : "o";
  for (const auto& [letter, flag] : kFlags) text += token.*flag ? std::string(1, letter) : "";
  return text;
}

AddedToken read_added(Reader& reader) {
  AddedToken token{.id = reader.number(' ')};
  const std::string_view flags = reader.field('\n');
  token.special = flags.starts_with('s');
  for (const auto& [letter, flag] : kFlags) token.*flag = flags.find(letter) != std::string_view::npos;
  require(flags_text(token) == flags);
  return token;
}

std::unique_ptr<Tokenizer> load_bpe(std::string_view saved) {
  Reader reader(saved);
  BpeParts parts;
  parts.rule = reader.field(' ');
  parts.whole_pieces = reader.number(' ') == 1;
  const std::int32_t tokens = reader.number(' '), merges = reader.number(' '), specials = reader.number('\n');
  for (std::int32_t i = 0; i < tokens; ++i) {
    const auto bytes = from_byte_characters(reader.field('\n'));
    require(bytes.has_value());
    parts.tokens.add(*bytes);
  }
  const TokenIndex index(parts.tokens);
  std::string bytes;
  for (std::int32_t i = 0; i < merges; ++i) {
    const std::int32_t left = reader.number(' '), right = reader.number('\n');
    require(left < tokens && right < tokens);
    bytes.assign(parts.tokens[static_cast<std::size_t>(left)]).append(parts.tokens[static_cast<std::size_t>(right)]);
    parts.merges.push_back({left, right, index.find(bytes)});
    require(parts.merges.back().merged >= 0);
  }
  for (std::int32_t i = 0; i < specials; ++i) parts.added.push_back(read_added(reader));
  require(reader.at_end());
  auto tokenizer = std::make_unique<BpeTokenizer>(std::move(parts));
  require(tokenizer->save().substr(kBpeTokenizer.header.size()) == saved);
  return tokenizer;
}

}  // namespace

constinit const TokenizerKind kBpeTokenizer = {"bpe",
                                               "frequent sequence of bytes",
                                               "byte pairs",
                                               Vocabulary::learned,
                                               "maki bpe tokenizer 1\n",
                                               make_bpe,
                                               load_bpe,
                                               /*has_limit=*/true,
                                               /*spaced_words=*/true};

std::string BpeTokenizer::save_encoding() const {
  std::string saved(kBpeTokenizer.header);
  const auto to = std::back_inserter(saved);
  fmt::format_to(to, "{} {} {} {} {}\n", parts_.rule, parts_.whole_pieces ? 1 : 0, parts_.tokens.size(),
                 parts_.merges.size(), parts_.added.size());
  for (std::size_t id = 0; id < parts_.tokens.size(); ++id) (saved += to_byte_characters(parts_.tokens[id])) += '\n';
  for (const BpeMerge& merge : parts_.merges) fmt::format_to(to, "{} {}\n", merge.left, merge.right);
  for (const AddedToken& token : parts_.added) fmt::format_to(to, "{} {}\n", token.id, flags_text(token));
  return saved;
}

}  // namespace maki
