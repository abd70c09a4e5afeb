// Rotary position embedding: Su et al. 2021, arXiv:2104.09864, section 3.2. Every head is a row of D/2 pairs of
// columns, and pair i of the token at position p is rotated in its plane by the angle p / base^(2i/D). A dot product of
// two rotated heads then depends on the difference of their positions alone.
//
// Pair i is columns i and i + D/2, the halves of a head, as in GPT-NeoX and in the LLaMA of transformers, so that their
// weights can be used as they are. The paper and Meta's LLaMA pair neighbours, 2i and 2i + 1; the two differ by a fixed
// permutation of the rows of the projections to q and k.
// T is float or double. No argument is checked; the only exception is Error if MAKI_TARGET is invalid (simd/target.h).
#pragma once

#include <cstdint>

#include "autograd/core/sink.h"

namespace maki::kernels {

enum class Turn : std::uint8_t { forward, back };

/// The sizes of a rotation: rows (b, t) of `width` columns, of which the first heads · head_size belong to heads.
/// Requires: head_size is even, heads · head_size <= width.
struct RotaryShape {
  std::int64_t batch = 0, tokens = 0, width = 0, heads = 0, head_size = 0;
};

/// For each pair (a, b) of a head, with cos and sin of its angle:
///   forward: (a cos − b sin, b cos + a sin);  back: (a cos + b sin, b cos − a sin), which is also the gradient of
/// forward. Columns beyond the heads are copied. x, y [batch, tokens, width]; y is added to if it adds. angles
/// [tokens, head_size]: the D/2 cosines of a position, then its D/2 sines; all sequences and heads share them.
template <class T>
void rotary(const RotaryShape& shape, Turn turn, const T* x, const T* angles, Sink<T> y);

}  // namespace maki::kernels
