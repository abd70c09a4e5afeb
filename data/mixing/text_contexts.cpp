#include "data/mixing/text_contexts.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "data/mixing/context_table.h"

namespace maki {
namespace {

constexpr int kFollowersBits = 20;          // a million slots, 8 MB, for what followed two tokens
constexpr std::size_t kColumnsPerStep = 4;  // in one context: words rarely stand in exactly one column again

std::uint64_t hash_of(std::initializer_list<std::uint64_t> values) {
  std::uint64_t hash = 0;
  for (const std::uint64_t value : values) hash = extend_hash(hash, value);
  return hash;
}

// The kinds of the last n characters.
std::uint64_t last_kinds(std::uint64_t kinds, int n) { return kinds & ((std::uint64_t{1} << 4 * n) - 1); }

}  // namespace

TextContexts::TextContexts(std::vector<TokenTraits> traits, bool recalls)
    : traits_(std::move(traits)), followers_(recalls ? std::size_t{1} << kFollowersBits : 0) {}

void TextContexts::begin_text() {
  last_ = {};
  folded_ = {};
  word_ = kinds_ = line_ = heading_ = 0;
  word_length_ = column_ = last_line_ = 0;
  after_empty_line_ = true;
}

void TextContexts::Words::follow(const TokenTraits& traits, std::uint64_t token) {
  if (!traits.begins_in_word && current != 0) {
    before = {current, before[0]};
    current = 0;
  }
  if (traits.ends_in_word) current = extend_hash(current, token);
}

std::size_t TextContexts::followers_slot() const {
  return static_cast<std::size_t>(hash_of({last(1), last(2)}) >> (64 - kFollowersBits));
}

void TextContexts::follow(std::int32_t token) {
  const TokenTraits& traits = traits_[static_cast<std::size_t>(token)];
  const auto id = static_cast<std::uint64_t>(token);
  if (!followers_.empty()) {
    std::uint64_t& followers = followers_[followers_slot()];
    followers = followers << 16 | (id & 0xFFFF);
  }
  std::shift_right(last_.begin(), last_.end(), 1);
  last_[0] = id + 1;
  folded_.follow(traits, traits.folded);
  if (!traits.begins_in_word) word_ = word_length_ = 0;
  if (traits.ends_in_word) word_ = extend_hash(word_, id);
  if (traits.ends_in_word) word_length_ = std::min(word_length_ + 1, kMaxWordLength);
  kinds_ = kinds_ << 4 | static_cast<std::uint64_t>(traits.kind);
  if (traits.ends_line) return end_line();
  line_ = extend_hash(line_, id);
  ++column_;
}

void TextContexts::end_line() {
  if (column_ > 0 && after_empty_line_) heading_ = line_;
  after_empty_line_ = column_ == 0;
  last_line_ = std::exchange(column_, 0);
  line_ = 0;
}

TextContexts::Hashes TextContexts::hashes() const {
  Hashes hashes;
  std::uint64_t tokens = 0;
  for (std::size_t k = 1; k <= kOrders; ++k) hashes[k - 1] = tokens = extend_hash(tokens, last(k));
  const std::uint64_t folded = folded_.current, previous = folded_.before[0], second = folded_.before[1];
  const std::uint64_t followers = followers_.empty() ? 0 : followers_[followers_slot()];
  const std::uint64_t last_folded = last(1) == 0 ? 0 : traits_[static_cast<std::size_t>(last(1) - 1)].folded;
  std::size_t next = kOrders;
  for (const std::uint64_t context : {
           // The word so far without regard to capitals, and words before it.
           hash_of({folded, last_folded}),
           hash_of({folded, previous}),
           hash_of({folded, second}),
           hash_of({folded, previous, second}),
           // The word as it is written, after characters of which kinds, and under which heading.
           hash_of({word_, last(1), last_kinds(kinds_, 4)}),
           hash_of({word_, last(1), heading_}),
           // The place within the line; the line so far.
           hash_of({column_, last(1)}),
           hash_of({column_ / kColumnsPerStep, word_, last(1)}),
           hash_of({last_line_, column_, last_kinds(kinds_, 1)}),
           hash_of({line_}),
           // Kinds of characters: words of the same form.
           hash_of({last_kinds(kinds_, 10), last(1)}),
           hash_of({last_kinds(kinds_, 8), last(1), last(2)}),
           // Tokens with gaps; what followed the last two tokens before.
           hash_of({last(1), last(3)}),
           hash_of({last(2), last(3), last(4)}),
           hash_of({followers, last(1)}),
       })
    hashes[next++] = context;
  for (std::size_t i = 0; i < hashes.size(); ++i) hashes[i] = extend_hash(hashes[i], i);
  return hashes;
}

}  // namespace maki
