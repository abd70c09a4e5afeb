// The gradient of a step: the sum over its micro-batches, as one binary tree over their index
// (autograd/core/sum_tree.h), of which each rank of a team computes a part. The bits do not depend on the number of
// ranks.
//
// A rank has the micro-batches of a contiguous range, and adds their gradients to the roots of complete subtrees. The
// flat gradient is divided among the ranks as the optimizer divides its work: each rank receives its part of the roots
// of all others, adds them in the order of the tree, and updates that part of the parameters, whose new values the
// ranks then send each other. That is a reduce-scatter and an all-gather, the same bytes as an all-reduce, and each
// rank needs only its part of the moments (Rajbhandari et al. 2020, arXiv:1910.02054, stage 1).
#pragma once

#include <cstdint>
#include <vector>

#include "train/loop/gradient_tree.h"
#include "train/loop/team/team.h"
#include "train/run/trainable_model.h"

namespace maki {

/// How many elements of each subtree a rank receives at once, of a part of at most `longest_part` elements.
std::int64_t received_elements(std::int64_t bytes_of_one, std::int64_t subtrees, std::int64_t longest_part);

class GradientSum {
 public:
  /// `micro_batches` is the number of all ranks together; a rank may have none. All arguments outlive this object, and
  /// the offsets of the store are assigned. With several ranks, the optimizer gets a shard.
  GradientSum(Team& team, TrainableModel& model, std::int64_t micro_batches);

  /// The micro-batches of this rank.
  FlatRange own() const { return own_; }
  /// A step begins: nothing has been added yet.
  void begin();
  /// Takes what the store has as the gradient of the next micro-batch of this rank.
  void add();
  /// Adds the gradients of all ranks. The store then has the sum, as far as the optimizer and norm() of this rank need
  /// it, and of tables the whole sum. Called by all ranks together, as the functions below.
  void finish();
  /// The norm of the whole gradient (optim/clip.h).
  double norm();

  /// The parts of the flat values that the ranks update.
  const std::vector<FlatRange>& parts() const { return parts_; }

 private:
  void share_values();
  void finish_flat();
  void finish_rows();
  FlatRange part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  FlatRange blocks(int rank) const;
  void complete_blocks();

  Team& team_;
  ParameterStore& store_;
  FlatRange own_;
  std::vector<std::vector<int>> levels_;  // of the subtrees of each rank
  std::vector<FlatRange> parts_;
  GradientTree tree_;
};

}  // namespace maki
