// How backward attention is cut into heads and pieces of heads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/core/parallel.h"
#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/attention/bf16.h"
#include "autograd/kernels/attention/tile.h"

namespace maki::kernels {

/// If there are many heads, one thread computes a whole head whose panel (AttentionHeadScratch) has at most this many
/// elements, about 16,000 rows of 64 columns; heads with larger panels are cut into pieces. Below this bound whole
/// heads are faster than pieces, by 15 % at 2,560 rows and 4 % at 16,000.
inline constexpr std::int64_t kMaxWholeHeadPanel = std::int64_t{1} << 23;
/// Heads that are cut into pieces are processed in groups whose panels take about this many elements together, 16 MiB
/// of float32, or more if the threads need more pieces to be busy. Larger groups take more scratch, smaller ones have
/// fewer pieces between two barriers.
inline constexpr std::int64_t kGroupPanelElements = std::int64_t{1} << 22;

/// How backward distributes its work. The pieces depend on the shape alone, because the order of sums depends on them.
struct BackwardPlan {
  std::int64_t heads, panel;  // heads of all sequences; elements of one head's panel
  std::int64_t edge, pieces;  // rows of a piece; pieces along a head, 1 if one worker computes all of it
  std::int64_t group;         // heads that are processed at the same time, each with a panel
  std::int64_t steps;         // in which the pieces of a head are computed, if there are several

  /// The key piece that meets a query piece in a step; below 0: none. No two pieces of a step share a query, a key or,
  /// if there is a position term, a distance: the distances of query piece a and key piece b are less than an edge
  /// from (a − b) · edge + S − T.
  std::int64_t key_piece(std::int64_t step, std::int64_t query_piece) const {
    if (steps == pieces) return (step + pieces - query_piece) % pieces;
    const std::int64_t piece = step - query_piece;
    return piece < pieces ? piece : -1;
  }

  template <class T>
  static BackwardPlan of(const AttentionShape& shape) {
    const std::int64_t longest = std::max(shape.queries, shape.keys), heads = shape.batch * shape.heads;
    std::int64_t panel = AttentionHeadScratch<T>::size(shape.queries, shape.keys, shape.head_size);
    if (shape.relative) panel += RelativeHeadScratch<T>::size(shape.queries, shape.keys, shape.head_size);
    if (runs_in_bf16<T>(shape)) panel = Bf16HeadScratch(shape.queries, shape.keys, shape.head_size, nullptr).size;
    // With fewer than 32 heads, threads could be idle. With fewer than 512 rows, pieces would be too small for the
    // barrier that each step costs.
    const bool many = heads >= 32, whole = longest < 512 || (many && panel <= kMaxWholeHeadPanel);
    const std::int64_t most_pieces = many ? 16 : 32;
    const std::int64_t edge =
        whole ? longest : std::max<std::int64_t>(128, ceil_div(longest, most_pieces * kKeyBlock) * kKeyBlock);
    const std::int64_t pieces = longest == 0 ? 0 : ceil_div(longest, edge);
    const std::int64_t busy = pieces == 0 ? 0 : ceil_div(2 * threads(), pieces);  // heads for two pieces per thread
    return {
        heads,
        panel,
        edge,
        pieces,
        pieces > 1 ? std::min(heads, std::max({std::int64_t{1}, kGroupPanelElements / panel, busy})) : workers(heads),
        shape.relative ? 2 * pieces - 1 : pieces};
  }
};

}  // namespace maki::kernels
