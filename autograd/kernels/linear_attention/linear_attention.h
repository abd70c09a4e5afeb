// Linear attention (Katharopoulos et al. 2020, arXiv:2006.16236): attention whose weights are inner products of feature
// vectors, q_t·k_s, instead of exp(q_t·k_s). The sums over the past then are a state of constant size,
//
//   S_t = Σ_{s≤t} k_s v_sᵀ [F, D]      z_t = Σ_{s≤t} k_s [F]      y_t = (q_tᵀ S_t) / max(q_tᵀ z_t, floor)
//
// and time and memory are linear in T. It is computed as a scan over chunks of tokens (scan.h): within a chunk as a
// causal product of all pairs, between chunks through the state. A chunk of one token is the recurrence, a chunk of all
// tokens the quadratic form; the results differ only by rounding.
//
// Backward needs no state of any token either. With the reciprocals r_t of the denominators, dn_t = r_t dy_t and
// dd_t = −r_t (dy_t·y_t), or 0 where the floor holds,
//
//   dq_t = Σ_{s≤t} (dn_t·v_s + dd_t) k_s      dk_s = Σ_{t≥s} (v_s·dn_t + dd_t) q_t      dv_s = Σ_{t≥s} (k_s·q_t) dn_t
//
// which are three more scans, the first like that of forward, the other two backwards in time.
//
// The bits of a row depend on the rows that it sees, their positions and the chunk size, and on nothing else: not on T,
// not on the batch, not on the number of threads. A row that it does not see is skipped, not multiplied by 0, so NaN in
// the future stays there.
//
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/kernels/attention/attention.h"

namespace maki::kernels {

struct LinearAttentionShape {
  std::int64_t batch = 0, queries = 0, keys = 0, heads = 0, features = 0, head_size = 0;  // B, T, S, H, F, D
  bool causal = true;      ///< query t sees keys 0 … t, and T = S; otherwise it sees all keys
  std::int64_t chunk = 0;  ///< tokens per chunk; 0: kDefaultChunkRows
  double floor = 0;        ///< lower bound of the denominators; 0: none
  bool carries = false;    ///< forward starts from a state or leaves one behind; only if causal
};

/// What a sequence leaves behind, and what the next tokens start from: S [B, H, F, D] and z [B, H, F], in `from` before
/// the first row and in `to` after the last one. Null: the start is zero, or the end is not wanted. The two
/// pointers of an end are null together; `to` may be the memory of `from`.
template <class T>
struct LinearAttentionEnds {
  const T *from_sums = nullptr, *from_norms = nullptr;
  T *to_sums = nullptr, *to_norms = nullptr;
};

/// Elements of scratch that linear_attention_forward() and linear_attention_backward() need. Requires the same as
/// attention_forward_scratch() does.
template <class T>
std::int64_t linear_attention_forward_scratch(const LinearAttentionShape& shape);
template <class T>
std::int64_t linear_attention_backward_scratch(const LinearAttentionShape& shape);

/// q [B, T, H·F], k [B, S, H·F], v [B, S, H·D], y [B, T, H·D]. inverse [B, H, T], never null: the reciprocals of the
/// denominators, for backward. If S = 0, y and inverse are 0. `ends` may be given only with shape.carries.
template <class T>
void linear_attention_forward(const LinearAttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k,
                              HeadRows<const T> v, HeadRows<T> y, T* inverse, const LinearAttentionEnds<T>& ends,
                              T* scratch);

/// The gradients of q, k and v from dy and from forward's y and `inverse`, delivered in this order, so that sinks of
/// the same tensor may follow one another. Any of them may be unwanted.
template <class T>
void linear_attention_backward(const LinearAttentionShape& shape, HeadRows<const T> q, HeadRows<const T> k,
                               HeadRows<const T> v, HeadRows<const T> y, HeadRows<const T> dy, const T* inverse,
                               HeadSink<T> dq, HeadSink<T> dk, HeadSink<T> dv, T* scratch);

}  // namespace maki::kernels
