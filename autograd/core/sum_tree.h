// Sums terms as a binary tree over their index: ((t0 + t1) + (t2 + t3)) + …. The order of the additions depends only on
// the number of terms. So whoever has the terms of a contiguous range can add them to the roots of complete subtrees,
// and whoever receives the roots of all ranges, in order, arrives at the bits of one sum over all terms.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace maki {

/// T: a handle of a term, such as Tensor. `add(left, right)` returns the sum of two terms, whose handles it may take.
template <class T>
class SumTree {
 public:
  struct Root {
    int level;  ///< the sum of 2^level terms, of which the first has an index that is a multiple of 2^level
    T sum;
  };

  /// Forgets all terms; the next one has this index. Keeps the memory of the list.
  void begin(std::int64_t index = 0) noexcept {
    roots_.clear();
    next_ = index;
  }
  bool empty() const { return roots_.empty(); }
  /// Adds the next term or, with a level, the root of the subtree of the next 2^level terms. Requires: its index is a
  /// multiple of 2^level.
  template <class Add>
  void push(T term, const Add& add, int level = 0) {
    std::int64_t index = next_ >> level;
    next_ += std::int64_t{1} << level;
    // The root before an odd one is its sibling, unless the range begins in between: then its level is lower.
    for (; index % 2 == 1 && !roots_.empty() && roots_.back().level == level; index /= 2, ++level) {
      term = add(std::move(roots_.back().sum), std::move(term));
      roots_.pop_back();
    }
    roots_.push_back({level, std::move(term)});
  }
  /// The complete subtrees of the range, from left to right: at most two of each level, and of a range that begins at 0
  /// at most one.
  std::vector<Root>& roots() { return roots_; }
  const std::vector<Root>& roots() const { return roots_; }
  /// The sum of all terms of a range that begins at 0: that of the last roots first. Requires: there are terms.
  template <class Add>
  T total(const Add& add) const {
    T sum = roots_.back().sum;
    for (auto root = roots_.rbegin() + 1; root != roots_.rend(); ++root) sum = add(root->sum, std::move(sum));
    return sum;
  }

 private:
  std::vector<Root> roots_;
  std::int64_t next_ = 0;
};

}  // namespace maki
