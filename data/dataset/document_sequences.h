// Sequences that never cross the boundary of a document. Every document is cut from its beginning into sequences of at
// most T = block_size tokens, of which the last one is usually shorter.
//
// If the vocabulary has a token that ends a document, a document begins with the one that ends the document before it:
// that is what its first token is predicted from, as GPT-2 was trained. The first document of a text has none, and
// neither has a document that is a piece of its own (TokenSpan::joins()); their first tokens are never predicted. So
// the targets are those of a text without documents: every token except the first of each piece.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/tokenizer/tokens.h"

namespace maki {

/// Thread safety: immutable; may be used by several threads at once.
class DocumentSequences {
 public:
  struct Sequence {
    /// It reads tokens [start, start + length) and predicts the tokens [start + 1 + known, start + 1 + length).
    std::int64_t start = 0, length = 0;
    std::int64_t known = 0;  ///< targets that the sequence before has predicted; 0 without overlap
  };

  /// Documents end with the token `end_of_text`, if there is one, and with a piece. With a stride in [1, block_size),
  /// sequences of the same document overlap: each begins `stride` tokens after the one before; 0: block_size. Reads all
  /// tokens, and takes 12 bytes per sequence. The tokens are not needed afterwards. Throws CorpusError unless there are
  /// targets, and Error unless block_size >= 1 and the stride is in [0, block_size].
  DocumentSequences(TokenSpan tokens, std::optional<std::int32_t> end_of_text, std::int64_t block_size,
                    std::int64_t stride = 0);

  std::int64_t count() const { return std::ssize(starts_); }
  std::int64_t block_size() const { return block_size_; }
  /// Requires: 0 <= i < count().
  Sequence operator[](std::int64_t i) const;
  /// The number of targets of all sequences together.
  std::int64_t targets() const { return targets_; }
  /// The share of the positions of all sequences, of block_size each, that predict nothing: what is filled up behind
  /// shorter sequences and, with a stride, targets that the sequence before has predicted.
  double filling() const;

 private:
  void add_document(std::int64_t begin, std::int64_t end, std::int64_t stride);

  std::int64_t block_size_, targets_ = 0;
  std::vector<std::int64_t> starts_;
  std::vector<std::int32_t> lengths_;
};

}  // namespace maki
