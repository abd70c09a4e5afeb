// The one computation that linear attention consists of, as plain pointers, and the layout of its scratch: the
// interface between the portable code and the code that is compiled once per SIMD target.
//
// A scan is out_i = Σ_j (a_i·b_j) c_j, over the rows j ≤ i if it is causal, else over all rows. It needs a state
// S = Σ_j b_j c_jᵀ of the rows before the chunk. The state is summed in two levels, chunks into segments and segments
// into the base, S = base + part, wherever the scan begins. So the segments of a long scan can be computed in parallel,
// from the base of each, and give the same bits as one after the other; and rounding errors grow with the number of
// segments plus the number of chunks in one, not with their product.
#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/attention/tile.h"

namespace maki::kernels {

/// Rows per chunk unless the caller asks for another number. 64 was as fast as 128 and faster than 32 at 32 columns
/// and at 64. The result's bits depend on it, so it must not change.
inline constexpr std::int64_t kDefaultChunkRows = 64;
/// Rows per segment, rounded down to whole chunks, at least one: so few that threads can share a long sequence by
/// segments, so many that computing the sum of each once more costs little. The bits depend on it, so it must not
/// change.
inline constexpr std::int64_t kSegmentRows = 512;
constexpr std::int64_t segment_rows(std::int64_t chunk) {
  return std::max<std::int64_t>(1, kSegmentRows / chunk) * chunk;
}

/// One number per row, `step` apart; null: none.
template <class T>
struct PerRow {
  const T* data = nullptr;
  std::int64_t step = 1;
};

/// The rows of one operand: row t is data[t · stride … + cols) times scale[t] (if there is a scale), followed by
/// tail[t], which is not scaled, as one more element (if there is a tail). With negative strides a scan runs backwards
/// in time.
template <class T>
struct ScanRows {
  const T* data = nullptr;
  std::int64_t stride = 0, cols = 0;
  PerRow<T> scale{}, tail{};

  std::int64_t width() const { return cols + (tail.data != nullptr ? 1 : 0); }
};

/// One head of one sequence.
template <class T>
struct LinearScan {
  ScanRows<T> a, b, c;                 ///< a and b have the same width, the depth of the scan; c has no tail
  std::int64_t queries = 0, keys = 0;  ///< rows of a and out; of b and c
  std::int64_t chunk = kDefaultChunkRows;
  bool causal = true;
  T* out = nullptr;
  std::int64_t out_stride = 0;
  bool add = false;
  /// If given, out_i is divided by max(Σ_j a_i·b_j, floor), whose reciprocal is written to inverse[i]; if keys is 0,
  /// both are 0.
  T* inverse = nullptr;
  T floor{};  ///< 0: no lower bound
};

/// The sizes of a scan in scratch. A state is S [depth, width] with padded rows and columns, then z [depth], the sum of
/// the rows of b.
struct ScanSize {
  std::int64_t chunk, depth, width, buffer;  // rows of a chunk; padded sizes; the chunk padded to whole key blocks

  ScanSize(std::int64_t chunk_, std::int64_t depth_, std::int64_t width_)
      : chunk(chunk_),
        depth(padded(depth_)),
        width(padded(width_)),
        buffer((chunk_ + kKeyBlock - 1) / kKeyBlock * kKeyBlock) {}

  std::int64_t state() const { return depth * width + depth; }
  /// Elements of scratch of one worker: a, b and bᵀ [buffer, depth], c [buffer, width]; weights [kPaddingMultiple,
  /// buffer] and output [kPaddingMultiple, width] of a group of rows; base, part and their sum.
  std::int64_t scratch() const {
    return 3 * buffer * depth + buffer * width + kPaddingMultiple * (buffer + width) + 3 * state();
  }
};

}  // namespace maki::kernels
