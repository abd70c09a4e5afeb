// The gradient of a table of which a step uses few rows, such as one of n-gram embeddings with a hundred thousand rows:
// only the rows that were used are stored, so that no step passes over the whole table.
//
// Thread safety: none; objects are used by one thread at a time.
#pragma once

#include <cstdint>

#include "autograd/core/sum_tree.h"
#include "autograd/tensor.h"

namespace maki {

/// The rows that have a gradient, and their gradients. All other rows have a gradient of 0. It is false if there is no
/// gradient at all, but true for one without rows (U = 0).
struct RowGradient {
  Tensor rows = {};    ///< [U] int32, ascending, without repetition
  Tensor values = {};  ///< [U, C]
  explicit operator bool() const { return static_cast<bool>(rows); }
};

/// The sum of two gradients of the same table: the union of their rows, a + b where both have a row. Throws Error if
/// either is false.
RowGradient sum_of_rows(const RowGradient& a, const RowGradient& b);

/// The gradients that several backward passes deliver, summed as a binary tree over their number, as the gradients of
/// micro-batches are: ((g0 + g1) + (g2 + g3)) + …
class RowGradients {
 public:
  void add(RowGradient gradient, int level = 0);
  /// The sum of what was added since begin(); empty if nothing was.
  RowGradient sum() const;
  /// Drops everything. The next gradient has this index; see SumTree.
  void begin(std::int64_t index = 0) noexcept { tree_.begin(index); }
  const SumTree<RowGradient>& tree() const { return tree_; }

 private:
  SumTree<RowGradient> tree_;
};

}  // namespace maki
