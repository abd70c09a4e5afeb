// The gradient of a step: the sum over its micro-batches, as one binary tree over their index
// (autograd/core/sum_tree.h), of which each rank of a team computes a part. The bits do not depend on the number of
// ranks.
//
// A rank has the micro-batches of a contiguous range, and adds their gradients to the roots of complete subtrees. The
// flat gradient is divided among the ranks as the optimizer divides its work: each rank receives its parts of the roots
// of all others, adds them in the order of the tree, and updates these parts of the parameters, whose new values the
// ranks then send each other. That is a reduce-scatter and an all-gather, the same bytes as an all-reduce, and each
// rank needs only its parts of the moments (Rajbhandari et al. 2020, arXiv:1910.02054, stage 1). The exchange begins
// with the backward pass of the last micro-batch of a rank, bucket by bucket (train/loop/team/buckets.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autograd/core/sum_tree.h"
#include "autograd/tape.h"
#include "train/loop/team/range_sum.h"
#include "train/loop/team/team.h"
#include "train/run/trainable_model.h"

namespace maki {

class GradientSum {
 public:
  /// `micro_batches` is the number of all ranks together; a rank may have none. All arguments outlive this object, and
  /// the offsets of the store are assigned. With several ranks, the optimizer gets a shard.
  GradientSum(Team& team, TrainableModel& model, std::int64_t micro_batches);

  /// The micro-batches of this rank.
  FlatRange own() const { return own_; }
  /// A step begins: nothing has been added yet.
  void begin();
  /// Takes what the store has as the gradient of the next micro-batch of this rank, which is not its last.
  void add();
  /// Runs backward through the last micro-batch of this rank, if it has any, and adds the gradients of all ranks. The
  /// store then has the sum, as far as the optimizer and norm() of this rank need it, and of tables the whole sum.
  /// Called by all ranks together, as the functions below. Requires: no rank stops any more; between two ranks, no
  /// messages are under way.
  void finish(Tape& tape, const Tensor& last_loss, double scale);
  /// The norm of the whole gradient (optim/clip.h).
  double norm();

  /// The parts of the flat values that a rank updates, in their order.
  std::vector<FlatRange> parts_of(int rank) const;

 private:
  // A part of a bucket.
  struct Piece {
    FlatRange range;
    FlatRange blocks;  // whose squares its rank sums: those that end in it
    int rank;
  };

  void divide(const Optimizer& optimizer);
  void exchange(Tape& tape, const Tensor& last_loss, double scale);
  std::vector<std::byte*> add_last(FlatRange range);
  std::vector<std::size_t> last_nodes(const Tape& tape) const;
  template <class BytesOf>
  void gather(std::span<std::byte> all, const BytesOf& bytes_of);
  void share_values();
  void finish_rows();
  void complete_blocks();

  Team& team_;
  ParameterStore& store_;
  FlatRange own_;
  std::vector<std::vector<int>> levels_;  // of the subtrees of each rank
  std::vector<RangeSum::Parts> buckets_;  // in the order of their exchange; empty without other ranks, as is the next
  std::vector<Piece> pieces_;             // in the order of the flat values: of each bucket one for every rank
  SumTree<Tensor> tree_;
  std::optional<RangeSum> sum_;
};

}  // namespace maki
