// The saved form of an NgramTrie, described in docs/formats.md.
#include <bit>
#include <limits>

#include "data/io/error.h"
#include "data/ngram/ngram_trie.h"

namespace maki {
namespace {

constexpr std::string_view kHeader = "maki n-gram counts 1\n";

void require(bool good) { check<CorpusError>(good, "n-gram counts: the saved counts are damaged"); }

// Numbers in groups of seven bits, the lowest first; all bytes of a number but the last have their highest bit set.
void append_number(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(0x80 | (number & 0x7F));
  bytes += static_cast<char>(number);
}

void append_double(std::string& bytes, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>((bits >> shift) & 0xFF);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  std::uint8_t byte() {
    require(!left_.empty());
    const auto byte = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  /// A number of at most 32 bits in its shortest form.
  std::uint32_t number() {
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t next = byte();
      number |= std::uint64_t{next & 0x7FU} << shift;
      if (next >= 0x80 && shift < 28) continue;
      require(next < 0x80 && (next > 0 || shift == 0) && number <= std::numeric_limits<std::uint32_t>::max());
      return static_cast<std::uint32_t>(number);
    }
  }
  double real() {
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8) bits |= std::uint64_t{byte()} << shift;
    return std::bit_cast<double>(bits);
  }
  std::size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
};

// Every context takes at least a byte and every n-gram two, so the memory of the levels stays below a few times the
// size of the file. That of the unigrams, 12 bytes per token of the vocabulary, follows from what the caller expects.
NgramTrie::Level read_level(Reader& reader, std::size_t contexts, std::uint32_t vocab_size) {
  NgramTrie::Level level;
  for (double& discount : level.discounts) {
    discount = reader.real();
    require(discount > 0 && discount <= NgramLevel::kDiscountClasses);
  }
  require(contexts <= reader.left());
  level.begin.reserve(contexts + 1);
  level.begin.push_back(0);
  for (std::size_t c = 0; c < contexts; ++c) {
    const std::uint32_t followers = reader.number();
    require(followers <= vocab_size && followers <= reader.left() / 2);
    std::uint64_t token = 0, total = 0;
    for (std::uint32_t i = 0; i < followers; ++i) {
      const std::uint32_t step = reader.number(), count = reader.number();
      require(i == 0 || step > 0);
      token += step;
      total += count;
      require(token < vocab_size && total <= std::numeric_limits<std::uint32_t>::max());
      level.tokens.push_back(static_cast<std::uint32_t>(token));
      level.counts.push_back(count);
    }
    require(level.tokens.size() < kNoNgram);
    level.begin.push_back(static_cast<std::uint32_t>(level.tokens.size()));
  }
  return level;
}

}  // namespace

std::string NgramTrie::save() const {
  std::string bytes(kHeader);
  append_number(bytes, static_cast<std::uint64_t>(vocab_size()));
  append_number(bytes, levels_.size());
  for (const Level& level : levels_) {
    for (const double discount : level.discounts) append_double(bytes, discount);
    for (std::size_t c = 0; c + 1 < level.begin.size(); ++c) {
      append_number(bytes, level.begin[c + 1] - level.begin[c]);
      std::uint32_t before = 0;
      for (std::uint32_t i = level.begin[c]; i < level.begin[c + 1]; ++i) {
        append_number(bytes, level.tokens[i] - before);
        append_number(bytes, level.counts[i]);
        before = level.tokens[i];
      }
    }
  }
  return bytes;
}

NgramTrie load_ngram_trie(std::string_view saved, std::int64_t vocab_size) {
  require(saved.starts_with(kHeader));
  Reader reader(saved.substr(kHeader.size()));
  const std::uint32_t tokens = reader.number(), order = reader.number();
  check<CorpusError>(tokens == vocab_size,
                     "n-gram counts: must be for the {} tokens of the vocabulary; got counts for {}; the saved counts "
                     "are damaged or belong to another model",
                     vocab_size, tokens);
  require(tokens >= 1 && tokens <= std::uint32_t{std::numeric_limits<std::int32_t>::max()} && order >= 1 &&
          order <= kMaxCountedNgram);
  NgramTrie trie;
  std::size_t contexts = 1;
  for (std::uint32_t k = 0; k < order; ++k) {
    trie.levels_.push_back(read_level(reader, contexts, tokens));
    contexts = trie.levels_.back().tokens.size();
  }
  require(reader.left() == 0);
  trie.finish(tokens);
  return trie;
}

}  // namespace maki
