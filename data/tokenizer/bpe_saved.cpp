// The saved form of a BPE tokenizer: lines of text, described in docs/formats.md.
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "data/text/error.h"
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

std::unique_ptr<Tokenizer> make(const TextToLearn& text, const TokenizerOptions& options) {
  if (text.learned.size() == 1) return std::make_unique<BpeTokenizer>(learn_bpe(text.learned[0], options.vocab_size));
  std::size_t size = 0;
  for (const std::string_view piece : text.learned) size += piece.size();
  std::string all;
  all.reserve(size);
  for (const std::string_view piece : text.learned) all += piece;
  return std::make_unique<BpeTokenizer>(learn_bpe(all, options.vocab_size));
}

std::unique_ptr<Tokenizer> load(std::string_view saved) {
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
  for (std::int32_t i = 0; i < specials; ++i) parts.specials.push_back(reader.number('\n'));
  require(reader.at_end());
  auto tokenizer = std::make_unique<BpeTokenizer>(std::move(parts));
  require(tokenizer->save().substr(kBpeTokenizer.header.size()) == saved);
  return tokenizer;
}

}  // namespace

constinit const TokenizerKind kBpeTokenizer = {"bpe", "frequent sequence of bytes", "maki bpe tokenizer 1\n", make,
                                               load};

std::string BpeTokenizer::save() const {
  std::string saved(kBpeTokenizer.header);
  const auto to = std::back_inserter(saved);
  fmt::format_to(to, "{} {} {} {} {}\n", parts_.rule, parts_.whole_pieces ? 1 : 0, parts_.tokens.size(),
                 parts_.merges.size(), parts_.specials.size());
  for (std::size_t id = 0; id < parts_.tokens.size(); ++id) (saved += to_byte_characters(parts_.tokens[id])) += '\n';
  for (const BpeMerge& merge : parts_.merges) fmt::format_to(to, "{} {}\n", merge.left, merge.right);
  for (const std::int32_t id : parts_.specials) fmt::format_to(to, "{}\n", id);
  return saved;
}

}  // namespace maki
