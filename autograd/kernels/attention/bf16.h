// Attention whose operands are rounded to bfloat16 (AttentionShape::rounds_operands): kernels that replace those of one
// tile of forward and of one head of backward, and the layout of their scratch. attention.h says what they compute,
// bf16_forward.cpp and bf16_backward.cpp how.
#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/attention/attention.h"
#include "autograd/kernels/attention/tile.h"

namespace maki::kernels {

/// Rows, columns and steps of packed panels are padded to multiples of this: kBf16PanelWidth and kBf16Depth of
/// gemm/bf16_block-inl.h, whose packing attention uses.
inline constexpr std::int64_t kBf16Panel = 32;

/// The maximum number of queries in a tile of forward, where kForwardTileQueries is that of other kernels. No bit
/// depends on it. With 128, forward takes 6 % longer for heads of 2,048 tokens and 2 % for heads of 256 (AMD EPYC, Zen
/// 5).
inline constexpr std::int64_t kBf16TileQueries = 256;

constexpr std::int64_t bf16_padded_size(std::int64_t n) { return (n + kBf16Panel - 1) / kBf16Panel * kBf16Panel; }

/// Hands out consecutive parts of a scratch memory, whose sizes are multiples of 16 floats; without memory, it only
/// counts them.
class ScratchParts {
 public:
  explicit ScratchParts(float* at = nullptr) : at_(at) {}

  float* floats(std::int64_t count) {
    float* const part = at_ == nullptr ? nullptr : at_ + size_;
    size_ += padded(count);
    return part;
  }
  std::int64_t size() const { return size_; }  ///< of all parts so far, in floats

 private:
  float* at_;
  std::int64_t size_ = 0;
};

/// The scratch of a tile of forward. Packed operands have room for elements of four bytes, although those of two bytes
/// need half of it. d = padded(head_size), e = bf16_padded_size(head_size).
struct Bf16ForwardScratch {
  float *q, *k, *v, *p;                   // packed: q [e, tile], k [block, e], vᵀ [e, block], p [block, panel]
  float *y, *max, *sum, *alpha;           // [tile / panel, head_size, panel]; [tile] twice; [panel]
  float *rows, *row, *s, *keep, *turned;  // [block, d]; [d]; [block, panel]; [panel, block]; [panel or block, block]
  float* origins;                         // [3, d]
  std::int64_t size;

  Bf16ForwardScratch(std::int64_t head_size, float* at) {
    const std::int64_t d = padded(head_size), e = bf16_padded_size(head_size);
    ScratchParts parts(at);
    q = parts.floats(e * kBf16TileQueries);
    k = parts.floats(kKeyBlock * e);
    v = parts.floats(e * kKeyBlock);
    p = parts.floats(kKeyBlock * kBf16Panel);
    y = parts.floats(kBf16TileQueries * head_size);
    max = parts.floats(kBf16TileQueries);
    sum = parts.floats(kBf16TileQueries);
    alpha = parts.floats(kBf16Panel);
    rows = parts.floats(kKeyBlock * d);
    row = parts.floats(d);
    s = parts.floats(kKeyBlock * kBf16Panel);
    keep = parts.floats(kBf16Panel * kKeyBlock);
    turned = parts.floats(kKeyBlock * kKeyBlock);
    origins = parts.floats(3 * d);
    size = parts.size();
  }
};

/// The scratch of one head in backward: its packed rows, and its gradients while they are being summed. Rows of queries
/// and keys are counted in whole tiles or blocks (t, s).
struct Bf16HeadScratch {
  float *q_columns, *dy_columns;  // packed as columns: [e, t]; what k and v are multiplied by
  float *q_steps, *dy_steps;      // packed with queries as steps: [t, e]; what ds and p are multiplied by
  float *k_rows, *v_rows, *kt;    // packed as rows: [s, e] twice, [e, s]
  float *dq, *dk, *dv, *row_sum;  // [t / tile, head_size, tile]; [s, d] twice; [t]
  std::int64_t size;

  Bf16HeadScratch(std::int64_t queries, std::int64_t keys, std::int64_t head_size, float* at) {
    const std::int64_t t = AttentionHeadScratch<float>::rows(queries), s = AttentionHeadScratch<float>::rows(keys);
    const std::int64_t d = padded(head_size), e = bf16_padded_size(head_size);
    ScratchParts parts(at);
    q_columns = parts.floats(e * t);
    dy_columns = parts.floats(e * t);
    q_steps = parts.floats(t * e);
    dy_steps = parts.floats(t * e);
    k_rows = parts.floats(s * e);
    v_rows = parts.floats(s * e);
    kt = parts.floats(e * s);
    dq = parts.floats(t * head_size);
    dk = parts.floats(s * d);
    dv = parts.floats(s * d);
    row_sum = parts.floats(t);
    size = parts.size();
  }
};

/// The scratch of a worker of backward, for one pair of a tile of queries and a block of keys.
struct Bf16PairScratch {
  float *s, *dp, *keep, *turned;              // [block, panel] twice; [panel, block]; [block, block]
  float *p_rows, *ds_rows, *ds_columns;       // packed: [block, tile] twice as rows, once as columns
  float *rows, *row, *k_origins, *v_origins;  // [block, d]; [d]; [3, d] twice
  std::int64_t size;

  Bf16PairScratch(std::int64_t head_size, float* at) {
    const std::int64_t d = padded(head_size);
    ScratchParts parts(at);
    s = parts.floats(kKeyBlock * kBf16Panel);
    dp = parts.floats(kKeyBlock * kBf16Panel);
    keep = parts.floats(kBf16Panel * kKeyBlock);
    turned = parts.floats(kKeyBlock * kKeyBlock);
    p_rows = parts.floats(kKeyBlock * kBackwardTileQueries);
    ds_rows = parts.floats(kKeyBlock * kBackwardTileQueries);
    ds_columns = parts.floats(kKeyBlock * kBackwardTileQueries);
    rows = parts.floats(kKeyBlock * d);
    row = parts.floats(d);
    k_origins = parts.floats(3 * d);
    v_origins = parts.floats(3 * d);
    size = parts.size();
  }
};

using Bf16ForwardKernel = void (*)(const AttentionForwardTile<float>& tile, float* scratch);
using Bf16BackwardKernel = void (*)(const AttentionBackwardHead<float>& head, float* panel, const AttentionPiece& piece,
                                    float* worker_scratch, BackwardPhase phase);

/// The kernels for the CPU in use, with AMX tiles or fast instructions for pairs of bfloat16 numbers (bf16_unit()).
/// Null on other CPUs, where the kernels of float32 round the same operands (AttentionTile::rounds_operands). Throw
/// Error if MAKI_TARGET is invalid.
Bf16ForwardKernel bf16_forward_kernel();
Bf16BackwardKernel bf16_backward_kernel();

/// Whether these kernels compute attention of this shape.
template <class T>
bool runs_in_bf16(const AttentionShape& shape) {
  return shape.rounds<T>() && bf16_forward_kernel() != nullptr;
}

}  // namespace maki::kernels
