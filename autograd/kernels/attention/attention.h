// Attention: y = softmax(scale · q kᵀ) v for each head, tiled with an online softmax (Milakov and Gimelshein 2018,
// arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135), so that memory is O(T); forward saves only the log-sum-exp.
//
// The bits of an output row depend on its query, on the keys and values that it sees, on their positions and on the
// mask, and on nothing else. Keys are processed in blocks of 64 counted from key 0, a score is one reduction chain over
// D (for early rows, see below, a sum lane by lane), and a key that a row does not see adds exactly nothing. So
// generation with a key-value cache (T = 1, S = t + 1) equals row t of the full forward pass. A key that is not seen is
// skipped, not multiplied by 0, so NaN behind a mask stays there.
//
// A softmax does not change when the same number is added to all scores of a row. Therefore an origin is subtracted
// from the keys (and, in backward without dropout, from the values): if they have a large common mean, it is gone
// before products are rounded. The origin must be near most of the keys; an outlier of length 1e4 as the origin would
// cost all other keys their precision. So it is a median, column by column:
//
//   rows that see              origin
//   seven keys or more         the median of the first seven keys that the mask lets through
//   three to six keys          the median of the first three
//   one or two keys            the first key; only the difference of the two matters
//
// Rows that see fewer than seven keys are early rows (the first six of a causal head without a mask if T = S). They see
// so few keys that each is computed separately, from the unpacked keys. An origin is a function of keys that the row
// sees in any case, so it is the same in cached generation. In a column whose median is not finite, or whose middle
// three of seven values differ by more than half of the median, the origin is 0, because outliers may be the majority
// there.
//
// Relative errors of float32 against float64 (T = 80, D = 32, causal): with all inputs of mean 1 and standard deviation
// 0.1, y 2e-7, dq 3e-6, dk 2e-6, dv 3e-7 (dq 8e-5 without an origin); with one key, value or query of length 1e4 among
// normal ones, below 5e-6.
//
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "autograd/core/philox.h"

namespace maki::kernels {

/// The rows of all heads inside a wider matrix: head h of row t of sequence b begins at data + b · batch_stride +
/// t · row_stride + h · D; strides are in elements. A matrix with q, k and v side by side is described by three of
/// these.
template <class T>
struct HeadRows {
  T* data = nullptr;
  std::int64_t row_stride = 0, batch_stride = 0;
};

/// The rows of a gradient; data is null if the gradient is not wanted. `add` as in Sink.
template <class T>
struct HeadSink {
  T* data = nullptr;
  std::int64_t row_stride = 0, batch_stride = 0;
  bool add = false;
};

/// The position term of relative attention: with it, the score of query t and key s is scale · ((q_t + u)·k_s +
/// (q_t + v)·r_d) with the distance d = t + S − T − s, which is 0 for a query's own key. It requires a causal shape
/// without a mask and with S >= T. The row of distance 0, which every query meets, is subtracted from all rows of r,
/// for the reason for which the keys have an origin. Dai et al. 2019, arXiv:1901.02860, section 3.3. The products are
/// limited to the distances that a tile of queries meets in a block of keys, so nothing of size [T, S] is stored.
/// Whether there is a position term is said by AttentionShape::relative alone; if there is none, nothing here is read.
template <class T>
struct RelativeRows {
  const T* r = nullptr;  ///< [S, H·D], row d belongs to distance d
  std::int64_t row_stride = 0;
  const T *minus_u = nullptr, *minus_v = nullptr;  ///< [H·D]: −u and −v, which are subtracted from queries
};

/// The gradients of the position term. dq of attention_backward() is then that of the content term alone, so their sum
/// is the gradient of q, and their sums over all rows are those of u and v.
template <class T>
struct RelativeSinks {
  HeadSink<T> dq;  ///< [B, T, H·D]
  HeadSink<T> dr;  ///< [B, S, H·D], row d for distance d; of each sequence, not summed over B
};

struct AttentionShape {
  std::int64_t batch = 0, queries = 0, keys = 0, heads = 0, head_size = 0;  // B, T, S, H, D
  std::int64_t kv_heads = 0;                                                ///< K, which divides H; 0: K = H
  bool causal = false;                                                      ///< query t sees keys 0 … t + S − T
  bool relative = false;  ///< there is a position term, see RelativeRows
  /// Operands of products are rounded to bfloat16; see docs/decisions/019-bfloat16-attention.md. A number that is not
  /// finite may then reach other queries than those that see its key, unless a mask hides the key. No effect on double
  /// and with a position term.
  bool rounds_operands = false;
  double scale = 1;
  const std::int32_t* key_mask = nullptr;        ///< [B, S], 0 for keys that must not be seen; null: all may be seen
  const RandomStream* dropout_stream = nullptr;  ///< null: no dropout of the attention weights
  double dropout = 0;              ///< weight (b, h, t, s) is dropped if stream.bits(i) < ⌊dropout · 2³²⌋, where
  std::uint64_t first_weight = 0;  ///< i = first_weight + ((b·H + h)·T + t)·S + s

  /// How many heads have the same keys and values: head h has those of head h / heads_per_kv_head(). Ainslie et al.
  /// 2023, arXiv:2305.13245. Their gradients are added in ascending order of the heads.
  std::int64_t heads_per_kv_head() const { return kv_heads == 0 ? 1 : heads / kv_heads; }

  /// Whether operands of type T are rounded.
  template <class T>
  bool rounds() const {
    return std::is_same_v<T, float> && rounds_operands && !relative;
  }
};

/// Elements of scratch that attention_forward() and attention_backward() need. It must begin at a multiple of 64 bytes.
/// Requires: call them from the same parallel context (inside or outside a parallel region) and with the same threads()
/// as the kernels themselves. Inside a region they may need less, because they run on the calling thread alone.
template <class T>
std::int64_t attention_forward_scratch(const AttentionShape& shape);
template <class T>
std::int64_t attention_backward_scratch(const AttentionShape& shape);

/// q, y [B, T, H·D]; k, v [B, S, K·D]; y is overwritten. lse [B, H, T] or null: the base-2 logarithm of Σ exp(score −
/// score of the row's origin), from which backward recomputes the weights. y and lse of a row that sees no key are 0.
template <class T>
void attention_forward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                       HeadRows<T> y, T* lse, T* scratch, const RelativeRows<T>& relative = {});

/// The gradients of q, k and v from dy and from forward's y and lse; shapes as in attention_forward(). dk and dv must
/// be wanted together or not at all, dq may be unwanted. With a position term, all five must be wanted, and K must be
/// H.
template <class T>
void attention_backward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        HeadRows<const T> y, HeadRows<const T> dy, const T* lse, HeadSink<T> dq, HeadSink<T> dk,
                        HeadSink<T> dv, T* scratch, const RelativeRows<T>& relative = {},
                        const RelativeSinks<T>& relative_sinks = {});

}  // namespace maki::kernels
