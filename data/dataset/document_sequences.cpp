#include "data/dataset/document_sequences.h"

#include <algorithm>
#include <array>

#include "data/io/error.h"

namespace maki {
namespace {

// Calls found(position) for every token `id` of [begin, end), in order.
template <class Found>
void find_token(TokenSpan tokens, std::int32_t id, std::int64_t begin, std::int64_t end, const Found& found) {
  std::array<std::int32_t, 4096> block;
  for (std::int64_t at = begin; at < end; at += std::ssize(block)) {
    const std::span ids =
        std::span(block).first(static_cast<std::size_t>(std::min<std::int64_t>(end - at, std::ssize(block))));
    tokens.copy(at, ids);
    for (std::int64_t i = 0; i < std::ssize(ids); ++i) {
      if (ids[static_cast<std::size_t>(i)] == id) found(at + i);
    }
  }
}

}  // namespace

DocumentSequences::DocumentSequences(TokenSpan tokens, std::optional<std::int32_t> end_of_text, std::int64_t block_size,
                                     std::int64_t stride)
    : block_size_(block_size) {
  check(block_size >= 1 && stride >= 0 && stride <= block_size,
        "documents: the stride must be in [0, {}], and block_size at least 1; got {} and {}", block_size, stride,
        block_size);
  const std::span<const std::int64_t> joins = tokens.joins();
  for (std::size_t piece = 0; piece <= joins.size(); ++piece) {
    std::int64_t begin = piece == 0 ? 0 : joins[piece - 1];
    // The last token of a piece predicts nothing.
    const std::int64_t end = (piece == joins.size() ? static_cast<std::int64_t>(tokens.size()) : joins[piece]) - 1;
    const auto next_document = [&](std::int64_t position) {
      add_document(begin, position, stride > 0 ? stride : block_size);
      begin = position;
    };
    if (end_of_text) find_token(tokens, *end_of_text, begin + 1, end, next_document);
    next_document(end);
  }
  check<CorpusError>(targets_ >= 1, "documents: at least one must have two or more tokens; use longer ones");
}

// Tokens [begin, end) have targets.
void DocumentSequences::add_document(std::int64_t begin, std::int64_t end, std::int64_t stride) {
  for (std::int64_t start = begin, reached = begin; reached < end; start += stride) {
    starts_.push_back(start);
    lengths_.push_back(static_cast<std::int32_t>(std::min(block_size_, end - start)));
    reached = start + lengths_.back();
  }
  targets_ += std::max<std::int64_t>(0, end - begin);
}

DocumentSequences::Sequence DocumentSequences::operator[](std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  const std::int64_t before = i == 0 ? 0 : starts_[at - 1] + lengths_[at - 1];
  return {starts_[at], lengths_[at], std::max<std::int64_t>(0, before - starts_[at])};
}

double DocumentSequences::filling() const {
  return 1 - static_cast<double>(targets_) / static_cast<double>(count() * block_size_);
}

}  // namespace maki
