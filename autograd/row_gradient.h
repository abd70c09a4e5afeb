// The gradient of a table of which a step uses few rows, such as one of n-gram embeddings with a hundred thousand rows:
// only the rows that were used are stored, so that no step passes over the whole table.
//
// Thread safety: none; objects are used by one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

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
  void add(RowGradient gradient);
  /// The sum of what was added since clear(); empty if nothing was.
  RowGradient sum() const;
  void clear() noexcept;  ///< keeps the memory of its list

 private:
  // levels_[l] is empty or the finished sum of 2^l consecutive gradients, like the digits of a binary counter.
  std::vector<RowGradient> levels_;
};

}  // namespace maki
