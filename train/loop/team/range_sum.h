// Sums of flat gradients over the ranks of a team: each rank has the roots of its subtrees (autograd/core/sum_tree.h),
// receives its parts of the roots of all others, and adds them in the order of the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "autograd/parameter.h"
#include "train/loop/team/team.h"

namespace maki {

/// The memory of some elements of a flat tensor.
std::span<std::byte> bytes_in(Tensor& flat, FlatRange range);

/// left += right, for some elements of two roots. The bits do not depend on the number of threads.
void add_to_left(DType dtype, std::int64_t elements, std::byte* left, const std::byte* right);

/// The chunks in which parts are exchanged: so many elements of each of all subtrees, and at most so many chunks at
/// once.
struct ChunkSize {
  std::int64_t elements, at_once;
};
ChunkSize chunk_size(std::int64_t bytes_of_one, std::int64_t subtrees, std::int64_t longest_part);

class RangeSum {
 public:
  /// A part of a bucket for each rank.
  using Parts = std::vector<FlatRange>;

  /// `levels`: of the subtrees of each rank; `buckets`: in the order of their exchange. Both outlive this object.
  RangeSum(Team& team, const std::vector<std::vector<int>>& levels, const std::vector<Parts>& buckets, DType dtype);

  /// A sum begins, of these roots of this rank. That of its parts is written to `sum`, which may be the first root. The
  /// memory must stay until finish() has returned, and change no more where advance() was told that it is complete.
  void begin(std::vector<std::byte*> roots, std::byte* sum);
  /// Sends of the first `complete` buckets what it can, and adds what has arrived, without waiting.
  void advance(std::size_t complete);
  /// Waits for the whole sum. Requires: all buckets are complete. Throws what Messages::wait() throws.
  void finish();

 private:
  // Some elements of the parts of all ranks, which begin there in each part; and of this rank's own, the terms of the
  // sum, by rank and subtree, with the memory of those that are received.
  struct Chunk {
    Chunk(Team& team, std::size_t of_bucket, std::int64_t first, Tensor memory)
        : bucket(of_bucket), begin(first), received(std::move(memory)), messages(team) {}
    std::size_t bucket;
    std::int64_t begin;
    Tensor received;
    std::vector<std::byte*> terms;
    Messages messages;
  };

  std::int64_t longest(std::size_t bucket) const;
  FlatRange part(int rank, const Chunk& chunk) const;
  std::span<std::byte> bytes(std::byte* flat, FlatRange range) const;
  bool start_next(std::size_t complete);
  void add_first();

  Team& team_;
  const std::vector<std::vector<int>>& levels_;
  const std::vector<Parts>& buckets_;
  const DType dtype_;
  std::int64_t subtrees_ = 0;
  ChunkSize size_{};
  std::vector<std::byte*> roots_;
  std::byte* sum_ = nullptr;
  std::size_t bucket_ = 0;    // of the next chunk
  std::int64_t offset_ = 0;   // and where it begins
  std::deque<Chunk> chunks_;  // under way
};

}  // namespace maki
