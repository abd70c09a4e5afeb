// Every op of the engine: its contract here, forward and backward side by side in ops/<family>.cpp, its row in
// tests/op_table. All take float32 or float64, all inputs of one op alike, and throw Error on anything else; ids,
// targets and masks are int32. An empty Tensor() stands for an optional input that is not there. Shapes stand in
// brackets; "…" is any number of leading axes. Broadcasting is NumPy's.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "autograd/tensor.h"

namespace maki {

// --- elementwise (ops/elementwise.cpp)
// ---------------------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);

Tensor neg(const Tensor& x);
Tensor scale(const Tensor& x, double factor);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);  ///< gradient 0 at 0
Tensor silu(const Tensor& x);  ///< x · sigmoid(x)

enum class Gelu : std::uint8_t {
  erf,  ///< x · Φ(x), Hendrycks and Gimpel 2016, arXiv:1606.08415; nanoGPT, BERT
  tanh  ///< its tanh approximation; GPT-2, llm.c
};
Tensor gelu(const Tensor& x, Gelu form = Gelu::erf);

/// A copy in the given floating type, which may be that of x; the gradient is converted back. No other op mixes types.
Tensor convert(const Tensor& x, DType dtype);

/// Each element is 0 with probability p, else x / (1 − p). Identity without a Recording or with p = 0. 0 <= p < 1.
Tensor dropout(const Tensor& x, double p);

// --- products (ops/linear.cpp)
// -----------------------------------------------------------------------------------------

/// op(a) · op(b) over the last two axes: [… M, K] · [… K, N] → [… M, N]; the leading axes are equal, or one side is
/// 2-D. A transposed side is given as [… K, M], [… N, K].
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
/// x · weightᵀ + bias: [… in], [out, in], [out] or none → [… out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// gelu(linear(x, weight, bias), form) in one pass over the product: the same bits.
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Gelu form = Gelu::erf);

// --- reductions and layout (ops/reduce.cpp, ops/layout.cpp)
// ------------------------------------------------------------

/// Over the given axes (negative ones count from the end; none given: all), which disappear, or stay with extent 1.
Tensor sum(const Tensor& x, std::span<const int> axes, bool keep_axes = false);
Tensor sum(const Tensor& x, std::initializer_list<int> axes = {}, bool keep_axes = false);
/// Sum over count; NaN over nothing.
Tensor mean(const Tensor& x, std::span<const int> axes, bool keep_axes = false);
Tensor mean(const Tensor& x, std::initializer_list<int> axes = {}, bool keep_axes = false);

/// Swaps two axes: a copy.
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);
/// Joins along an axis; all other extents equal. At least one tensor.
Tensor concat(std::span<const Tensor> parts, int axis);
Tensor concat(std::initializer_list<Tensor> parts, int axis);
/// Elements [begin, end) of an axis: a copy.
Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end);
// reshape() is no op: it is a property of the handle (tensor.h).

// --- normalisation (ops/norm.cpp)
// --------------------------------------------------------------------------------------

/// Over the last axis. A row of −Inf alone is NaN, like 0/0.
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);
/// (x − mean) / sqrt(var + eps) · weight + bias over the last axis C: [… C], [C] or none, [C] or none → [… C]. The
/// variance is the biased one. Ba, Kiros and Hinton 2016, arXiv:1607.06450.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

// --- tokens and losses (ops/loss.cpp)
// ----------------------------------------------------------------------------------

/// Rows of a table: [V, C], ids […] int32 → [… C]. Throws when an id is outside [0, V).
Tensor embedding(const Tensor& table, const Tensor& ids);

struct CrossEntropy {
  std::int32_t ignored = -1;   ///< targets of this id count for nothing
  double label_smoothing = 0;  ///< ε: the target's weight is 1 − ε + ε/V, every other's ε/V
  bool sum = false;            ///< the sum over targets in place of the mean
};
/// −Σ weight · log softmax(logits), mean over the targets that are not ignored (0 when there are none): [… V], […]
/// int32 → [].
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options = {});
/// cross_entropy(linear(x, weight), targets, options): [… C], [V, C], […] int32 → []. Logits up to 64 MiB are kept for
/// backward, which turns them into their gradient where they stand; larger ones are made chunk by chunk of rows, in
/// forward and once more in backward. The gradients have the same bits either way.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& targets,
                            const CrossEntropy& options = {});

// --- attention (ops/attention.cpp)
// -------------------------------------------------------------------------------------

struct Attention {
  std::int64_t n_head = 1;
  bool causal = false;   ///< query t of T sees keys 0 … t + S − T: the last query sees all
  Tensor key_mask = {};  ///< [B, S] int32, 0 where a key must not be seen; none: all may be
  double dropout = 0;    ///< of the attention weights, in a Recording
  double scale = 0;      ///< of q·k; 0 means 1/√(C / n_head)
};
/// softmax(scale · q kᵀ) v for each head, a head being a range of D = C / n_head columns. Vaswani et al. 2017,
/// arXiv:1706.03762, eq. 1; tiled with an online softmax (Dao et al. 2022, arXiv:2205.14135): memory O(T). A query that
/// sees no key gives zeros and sends no gradient. The packed projection q‖k‖v: [B, T, 3C] → [B, T, C].
Tensor attention(const Tensor& qkv, const Attention& options);
/// Queries [B, T, C] and packed k‖v [B, S, 2C] → [B, T, C].
Tensor attention(const Tensor& q, const Tensor& kv, const Attention& options);

}  // namespace maki
