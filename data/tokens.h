// Token ids in the fewest bytes that hold the vocabulary: one, two or four per id. A long text is mostly its tokens,
// and most vocabularies are small.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace maki {

/// A view of token ids of any width. Ids may consist of several pieces (one per file of a corpus) that only stand one
/// behind the other: the first id of a piece does not follow from the last one of the piece before.
class TokenSpan {
 public:
  template <class Id>
  using Ids = std::span<const Id>;

  TokenSpan() = default;
  TokenSpan(std::span<const std::int32_t> ids) : ids_(ids) {}
  TokenSpan(const std::vector<std::int32_t>& ids) : ids_(std::span(ids)) {}
  template <class Id>
  TokenSpan(Ids<Id> ids, std::span<const std::int64_t> joins) : ids_(ids), joins_(joins) {}

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  std::int32_t operator[](std::size_t i) const;
  /// Copies ids [begin, begin + to.size()), which must exist.
  void copy(std::int64_t begin, std::span<std::int32_t> to) const;
  /// Ids [begin, begin + count), at most up to the end.
  std::vector<std::int32_t> ids(std::size_t begin = 0, std::size_t count = SIZE_MAX) const;
  /// Where the second piece begins and each one after it, ascending.
  std::span<const std::int64_t> joins() const { return joins_; }
  /// The joins in [begin, end), as indices into joins().
  std::pair<std::size_t, std::size_t> joins_between(std::int64_t begin, std::int64_t end) const;

 private:
  std::variant<Ids<std::int32_t>, Ids<std::uint16_t>, Ids<std::uint8_t>> ids_;
  std::span<const std::int64_t> joins_;
};

/// The ids themselves.
class Tokens {
 public:
  Tokens() = default;
  /// Empty; holds ids in [0, vocab_size).
  explicit Tokens(std::int64_t vocab_size);

  void reserve(std::size_t ids);
  void append(std::span<const std::int32_t> ids);
  /// What is appended from here on is another piece. Without effect where the piece before is empty.
  void begin_piece();

  std::size_t size() const { return view().size(); }
  bool empty() const { return size() == 0; }
  std::int32_t operator[](std::size_t i) const { return view()[i]; }
  std::vector<std::int32_t> ids() const { return view().ids(); }
  TokenSpan view() const;
  operator TokenSpan() const { return view(); }

 private:
  std::variant<std::vector<std::int32_t>, std::vector<std::uint16_t>, std::vector<std::uint8_t>> ids_;
  std::vector<std::int64_t> joins_;
};

}  // namespace maki
