// N-gram embeddings: beside the embedding of each token, learned rows for the pairs, triples, … of tokens that end in
// it are added to the input of the first block. The network then does not have to find out for itself which letters
// make a word: a small model with tables learns as fast as a much larger one without. FastText has such features
// (Bojanowski et al. 2017, arXiv:1607.04606); hashed ones in a language model: Roy et al. 2022, arXiv:2207.06366.
//
// Thread safety and lifetime: the same as for layers (nn/layers.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/layers.h"

namespace maki {

struct NgramOptions {
  std::vector<std::int64_t> orders =
      {};                     ///< numbers of tokens, ascending, each in [2, kMaxNgramTableOrder]; empty: no tables
  std::int64_t rows = 65536;  ///< the most rows of one order, at least 1 and below 2^31 / kMaxNgramTableOrder
  double dropout = 0;         ///< probability in [0, 1), for elements of the sum of the rows
  bool operator==(const NgramOptions&) const = default;
  /// How many tokens before a token its longest n-gram contains.
  std::int64_t recent_tokens() const { return orders.empty() ? 0 : orders.back() - 1; }
  /// For estimates of memory: vectors of width C per token that exist at the same time in backward.
  std::int64_t activation_vectors() const { return orders.empty() ? 0 : 1 + std::ssize(orders); }
};
/// The largest order of a table: n-grams of more tokens hardly occur again.
inline constexpr std::int64_t kMaxNgramTableOrder = 8;
/// The orders in a text such as "2,3,4"; none if it is "none". Throws Error, with the name of the option, for any other
/// text, also an empty one, and for orders that are not ascending or out of range.
std::vector<std::int64_t> ngram_orders_named(std::string_view text);
/// The inverse of ngram_orders_named().
std::string ngram_orders_text(const std::vector<std::int64_t>& orders);

/// The last tokens that a model has read, from which the n-grams and the prior of the next ones begin: what a state of
/// generation keeps.
class RecentTokens {
 public:
  /// At most `capacity` tokens per sequence; 0: nothing is kept.
  explicit RecentTokens(std::int64_t capacity = 0) : capacity_(capacity) {}
  /// The tokens in the order in which they were read, [B, m] with m <= capacity; empty if there are none.
  const Tensor& ids() const { return ids_; }
  /// Adds ids [B, T], T >= 1, and forgets all but the last `capacity`. Requires: the same B as before.
  void append(const Tensor& ids);
  void clear() { ids_ = {}; }
  /// Sequence i becomes the former sequence rows[i]. Requires: each row is in [0, B).
  void reorder(std::span<const std::int32_t> rows);

 private:
  std::int64_t capacity_;
  Tensor ids_;
};

/// The sum of the rows of all n-grams that end in a token: ids [B, T] int32 → [B, T, C]. The rows, initially 0, are one
/// table of ParamGroup::rows, [R, C]: those of the first order, then those of the next. An order n with vocab_size^n <=
/// `rows` has a row for each n-gram; the n-grams of other orders share `rows` rows by their hash. A token with fewer
/// than n − 1 tokens before it has no row of order n.
struct NgramEmbedding {
  /// Throws Error unless there are orders and all options are in range.
  NgramEmbedding(const Scope& scope, std::int64_t vocab_size, std::int64_t n_embd, const NgramOptions& options);
  /// `before` [B, m] are the tokens before ids, of which the last longest() − 1 count; empty: there are none. Requires:
  /// every id is in [0, vocab_size).
  Tensor operator()(const Tensor& ids, const Tensor& before = {}) const {
    return drop(embedding_sum(weight, rows(ids, before)));
  }
  /// The rows that are added: [B, T, number of orders] int32, −1 where there is none.
  Tensor rows(const Tensor& ids, const Tensor& before = {}) const;
  std::int64_t longest() const { return options.orders.back(); }

  NgramOptions options;
  std::int64_t vocab_size;
  Parameter& weight;
  Dropout drop;

 private:
  struct Table {
    std::int64_t order, first, rows;
    bool exact;
  };
  static std::vector<Table> tables(std::int64_t vocab_size, const NgramOptions& options);
  std::int32_t row(const Table& table, const std::int32_t* last, std::int64_t available) const;

  std::vector<Table> tables_;
};

}  // namespace maki
