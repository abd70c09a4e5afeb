// Attention: y = softmax(scale · q kᵀ) v for each head, tiled with an online softmax (Milakov and Gimelshein 2018,
// arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135), so that memory is O(T); forward saves only the log-sum-exp.
//
// Bits of an output row depend on its query, on the keys and values that it sees, on their positions and on the mask:
// on nothing else. Keys come in blocks of 64 counted from key 0, a score is one chain over D, and a key that a row does
// not see adds exactly nothing, so a cached generation (T = 1, S = t + 1) equals row t of the full forward. A key that
// is not seen is skipped, never multiplied by 0: NaN behind a mask stays there.
//
// Keys (and, in backward, values) are taken less the first key that the mask lets through, which every row that sees
// any sees: a softmax does not mind, and what large means have in common goes before it is rounded, not after. Should
// that key hold an infinity, its rows are NaN. float32 against float64 with inputs of mean 10 std, D = 32: y 1e-7 in
// place of 1e-6, dq 2e-5 in place of 3e-4.
#pragma once

#include <cstdint>

#include "autograd/core/philox.h"

namespace maki::kernels {

/// Rows of heads inside a wider matrix: head h of row t of sequence b begins at data + b·batch_stride + t·row_stride +
/// h·D. Packed q‖k‖v is three of these over one block.
template <class T>
struct HeadRows {
  T* data = nullptr;
  std::int64_t row_stride = 0, batch_stride = 0;
};

/// A gradient's rows; null data: nobody wants it. `add` as in Sink.
template <class T>
struct HeadSink {
  T* data = nullptr;
  std::int64_t row_stride = 0, batch_stride = 0;
  bool add = false;
};

struct AttentionShape {
  std::int64_t batch = 0, queries = 0, keys = 0, heads = 0, head_size = 0;  // B, T, S, H, D
  bool causal = false;                                                      ///< query t sees keys 0 … t + S − T
  double scale = 1;
  const std::int32_t* key_mask = nullptr;        ///< [B, S], 0 where a key must not be seen; null: all may be
  const RandomStream* dropout_stream = nullptr;  ///< null: no dropout of the weights
  double dropout = 0;  ///< weight (b, h, t, s) is dropped where stream.bits(((b·H + h)·T + t)·S + s) < dropout · 2³²
};

/// Elements of scratch that the two functions need, for threads() threads.
template <class T>
std::int64_t attention_forward_scratch(const AttentionShape& shape);
template <class T>
std::int64_t attention_backward_scratch(const AttentionShape& shape);

/// y [B, T, H·D]; lse [B, H, T] or null: the logarithm to base 2 of Σ exp(score − score of the first key), what
/// backward recomputes weights from. A row that sees no key is 0.
template <class T>
void attention_forward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                       HeadRows<T> y, T* lse, T* scratch);

/// From y and lse of the forward and dy. dk and dv are wanted together or not at all.
template <class T>
void attention_backward(const AttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        HeadRows<const T> y, HeadRows<const T> dy, const T* lse, HeadSink<T> dq, HeadSink<T> dk,
                        HeadSink<T> dv, T* scratch);

}  // namespace maki::kernels
