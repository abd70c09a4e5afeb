// Sequences of token ids, stored in 1, 2 or 4 bytes per id, whichever is enough for the vocabulary: tokens take most of
// the memory of a long text, and most vocabularies are small.
//
// Thread safety: ids may be read on several threads at once while none appends to them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace maki {

/// Ids that are not in memory one after the other.
///
/// Thread safety: may be read on several threads at once.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual std::size_t size() const = 0;
  /// Copies ids [begin, begin + to.size()) to `to`. Requires: they exist.
  virtual void copy(std::size_t begin, std::span<std::int32_t> to) const = 0;
  /// The positions of joins between texts, as TokenSpan has them.
  virtual std::span<const std::int64_t> joins() const = 0;
};

/// A part of a source.
struct SourceRange {
  const TokenSource* source = nullptr;
  std::size_t begin = 0, count = 0;

  std::size_t size() const { return count; }
  std::int32_t operator[](std::size_t i) const {
    std::int32_t id = 0;
    source->copy(begin + i, {&id, 1});
    return id;
  }
  SourceRange first(std::size_t n) const { return {source, begin, n}; }
  SourceRange last(std::size_t n) const { return {source, begin + count - n, n}; }
};

/// A read-only view of token ids of any width. The ids may consist of several pieces (one per file of a corpus), which
/// are stored one after the other but are not one text: the first id of a piece does not continue the piece before it.
///
/// Requires: the viewed ids and joins outlive the view.
class TokenSpan {
 public:
  template <class Id>
  using Ids = std::span<const Id>;

  TokenSpan() = default;
  TokenSpan(std::span<const std::int32_t> ids) : ids_(ids) {}
  TokenSpan(const std::vector<std::int32_t>& ids) : ids_(std::span(ids)) {}
  template <class Id>
  TokenSpan(Ids<Id> ids, std::span<const std::int64_t> joins) : ids_(ids), joins_(joins) {}
  /// Ids of a source. Reading them throws what TokenSource::copy() throws; and CorpusError for one outside [0,
  /// vocab_size), because a file may contain anything. With a vocab_size of 0 nothing is checked.
  TokenSpan(const TokenSource& source, std::int64_t vocab_size = 0)
      : ids_(SourceRange{&source, 0, source.size()}), joins_(source.joins()), vocab_size_(vocab_size) {}

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  std::int32_t operator[](std::size_t i) const;
  /// Copies ids [begin, begin + to.size()) to `to`. Requires: they exist.
  void copy(std::int64_t begin, std::span<std::int32_t> to) const;
  /// A copy of the ids [begin, begin + count), truncated at the end of the view.
  std::vector<std::int32_t> ids(std::size_t begin = 0, std::size_t count = SIZE_MAX) const;
  /// The first or the last `count` ids. Requires: they exist, and there are no joins.
  TokenSpan first(std::size_t count) const;
  TokenSpan last(std::size_t count) const;
  /// The indices at which the second and all later pieces begin, ascending.
  std::span<const std::int64_t> joins() const { return joins_; }
  /// The joins j with begin <= j < end, as a half-open range of indices into joins().
  std::pair<std::size_t, std::size_t> joins_between(std::int64_t begin, std::int64_t end) const;

 private:
  std::variant<Ids<std::int32_t>, Ids<std::uint16_t>, Ids<std::uint8_t>, SourceRange> ids_;
  std::span<const std::int64_t> joins_;
  std::int64_t vocab_size_ = 0;  // 0: the ids are known to be right
};

/// Several views that are read as one, such as the files of a text that was divided. Nothing is copied. The ids of a
/// window may be in two of them or more.
class TokenChain final : public TokenSource {
 public:
  /// Whether a text goes on from one part to the next, or a piece begins with each.
  enum class Border : std::uint8_t { none, piece };

  TokenChain(std::vector<TokenSpan> parts, Border border);

  std::size_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  void copy(std::size_t begin, std::span<std::int32_t> to) const override;
  std::span<const std::int64_t> joins() const override { return joins_; }

 private:
  std::vector<TokenSpan> parts_;  // none is empty
  std::vector<std::size_t> ends_;
  std::vector<std::int64_t> joins_;
};

/// Owns token ids, or shares those of a file.
class Tokens {
 public:
  Tokens() = default;
  /// Empty, for ids in [0, vocab_size).
  explicit Tokens(std::int64_t vocab_size);
  /// Ids that `owner`, which must not be null, keeps. append() then throws Error.
  Tokens(TokenSpan ids, std::shared_ptr<const void> owner) : shared_(ids), owner_(std::move(owner)) {}

  void reserve(std::size_t ids);
  /// Requires: the ids are in [0, vocab_size); others are truncated to the width of an id.
  void append(std::span<const std::int32_t> ids);
  /// Starts a new piece, to which the following ids belong. Has no effect if the current piece is empty. Call it only
  /// if ids follow: else the last join is size().
  void begin_piece();

  std::size_t size() const { return view().size(); }
  bool empty() const { return size() == 0; }
  std::int32_t operator[](std::size_t i) const { return view()[i]; }
  std::vector<std::int32_t> ids() const { return view().ids(); }
  /// A view that is valid until the tokens are changed or destroyed.
  TokenSpan view() const;
  operator TokenSpan() const { return view(); }

 private:
  std::variant<std::vector<std::int32_t>, std::vector<std::uint16_t>, std::vector<std::uint8_t>> ids_;
  std::vector<std::int64_t> joins_;
  TokenSpan shared_;
  std::shared_ptr<const void> owner_;  // of shared_, if it is not null
};

}  // namespace maki
