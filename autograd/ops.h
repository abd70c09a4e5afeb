// Every op of the engine. The contracts are here, forward and backward side by side in ops/<family>.cpp, the tests of
// each op in its row of tests/ops/op_table*.cpp.
//
// Inputs are float32 or float64, all inputs of one op of the same type, and the result has that type; ids, targets and
// masks are int32. Ops throw Error for any other type and for shapes that do not fit. An empty Tensor() stands for an
// optional input that is absent. Shapes are written in brackets, with "…" for any number of leading axes. The number of
// an axis may be negative and then counts from the end.
//
// Inside a Recording (tape.h), an op with an input that requires a gradient records its backward; otherwise it only
// computes. Results are new dense tensors, except where an op is the identity.
//
// Thread safety: ops may be called on several threads at once, also with shared inputs. A Recording belongs to the
// thread that opened it, and each thread must record on a tape of its own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "autograd/tensor.h"

namespace maki {

// --- elementwise (ops/elementwise.cpp) ---

/// a + b, a − b, a · b and a / b, element by element. The shapes are broadcast as in NumPy: aligned at the last axis,
/// an extent of 1 is repeated.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);

/// a + (1 + gate) · b with one gate for each row, bit for bit what add(a, add(b, mul(b, gate))) gives, in one pass:
/// a and b [… V], gate [… 1] → [… V].
Tensor add_gated(const Tensor& a, const Tensor& b, const Tensor& gate);

/// The arithmetic ops as operators; a number is converted to the type of the tensor. x * number is scale(x, number).
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);

/// Functions of one tensor, element by element: […] → […].
Tensor neg(const Tensor& x);
Tensor scale(const Tensor& x, double factor);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);  ///< the natural logarithm
Tensor sqrt(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);          ///< max(x, 0); its derivative at 0 is taken to be 0
Tensor relu_squared(const Tensor& x);  ///< relu(x)²: So et al. 2021, arXiv:2109.08668
Tensor silu(const Tensor& x);          ///< x · sigmoid(x)
/// elu(x) + 1: x + 1 where x > 0, else exp(x). The feature map of Katharopoulos et al. 2020, arXiv:2006.16236, eq. 7.
Tensor elu_plus_one(const Tensor& x);

enum class Gelu : std::uint8_t {
  erf,  ///< x · Φ(x): Hendrycks and Gimpel 2016, arXiv:1606.08415; used by nanoGPT and BERT
  tanh  ///< the tanh approximation of it; used by GPT-2 and llm.c
};
Tensor gelu(const Tensor& x, Gelu form = Gelu::erf);
/// silu(gate) · up of packed gate‖up: [… 2F] → [… F]. Shazeer 2020, arXiv:2002.05202. (ops/swiglu.cpp)
Tensor swiglu(const Tensor& x);
Tensor abs(const Tensor& x);  ///< its derivative at 0 is taken to be 0
/// x to the power of a finite constant. A negative x, including −Inf, gives NaN unless the exponent is an integer; x^0
/// is 1 for every x, including NaN, and has the gradient 0. The relative error is below 1e-7 in
/// float32; in float64, with the exponent p, it is below 2e-16 · |p| for integers up to ±64, and otherwise at most
/// 2.4e-16 · max(1, |p · log x|).
Tensor pow(const Tensor& x, double exponent);
/// low where x < low, high where x > high, else x; NaN stays NaN. The gradient flows where low <= x <= high, and where
/// x is NaN. Either bound may be infinite. Throws Error unless low <= high.
Tensor clamp(const Tensor& x, double low, double high);

/// a where the mask is not 0, else b; the mask is int32. All three are broadcast to one shape. Elements of a and b that
/// are not chosen have no influence on the result, even if they are NaN or Inf, and their gradient is 0.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);

/// A copy of x converted to float32 or float64, even if it has that type already; the gradient is converted back. This
/// is the only op whose output may differ from its input in being float32 or float64.
Tensor convert(const Tensor& x, DType dtype);

/// Multiplies each element by 0 with probability p, which does not hide NaN, and else by 1 / (1 − p). Outside a
/// Recording, or with p = 0, the identity. The mask is determined by the Recording's context and the number of random
/// ops before it. Throws Error unless 0 <= p < 1. Srivastava et al. 2014.
Tensor dropout(const Tensor& x, double p);

// --- products (ops/linear.cpp) ---

/// op(a) · op(b) over the last two axes: [… M, K] · [… K, N] → [… M, N]. The leading axes must be equal, or one operand
/// must have only two axes and is then used for every item of the batch. With transpose_a, a is given as [… K, M]; with
/// transpose_b, b is given as [… N, K].
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
/// x · weightᵀ + bias: x [… in], weight [out, in], bias [out] or none → [… out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// gelu(linear(x, weight, bias), form), bit for bit, computed in one pass over the product.
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Gelu form = Gelu::erf);
/// linear(linear_gelu(x, up, up_bias, form), down, down_bias), bit for bit: x [… C], up [F, C], down [D, F], up_bias
/// [F] and down_bias [D] or none → [… D]. The hidden layer [… F] goes through memory less often than between two ops
/// and, where it is rounded, in half of the bytes. (ops/feed_forward.cpp)
Tensor gelu_feed_forward(const Tensor& x, const Tensor& up, const Tensor& up_bias, const Tensor& down,
                         const Tensor& down_bias, Gelu form = Gelu::erf);

// --- reductions and layout (ops/reduce.cpp, ops/layout.cpp) ---

/// Sums over the given axes; negative axes count from the end, and an empty list means all axes. The axes are removed
/// from the shape or, with keep_axes, kept with extent 1. Throws Error if an axis is out of range or listed twice.
Tensor sum(const Tensor& x, std::span<const int> axes, bool keep_axes = false);
Tensor sum(const Tensor& x, std::initializer_list<int> axes = {}, bool keep_axes = false);
/// The sum divided by the number of elements summed; NaN if there are none.
Tensor mean(const Tensor& x, std::span<const int> axes, bool keep_axes = false);
Tensor mean(const Tensor& x, std::initializer_list<int> axes = {}, bool keep_axes = false);

/// The maximum along one axis, which is removed from the shape or, with keep_axis, kept with extent 1. NaN counts as
/// larger than any number. The gradient goes to the first of the largest elements; all others get 0. Throws Error if
/// the axis is out of range or has no elements, or 2^31 or more.
Tensor max(const Tensor& x, int axis = -1, bool keep_axis = false);
/// The index along the axis of the element that max() returns: the first if several are equal, and the first NaN if
/// there is one. The result is int32 and has no gradient. Throws as max() does.
Tensor argmax(const Tensor& x, int axis = -1, bool keep_axis = false);

/// A copy of x with two axes swapped.
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);
/// Concatenates 1 to 64 tensors along an axis; all other extents must be equal.
Tensor concat(std::span<const Tensor> parts, int axis);
Tensor concat(std::initializer_list<Tensor> parts, int axis);
/// Stacks 1 to 64 tensors of the same shape along a new axis, inserted before their axis `axis`; −1 makes it the last.
Tensor stack(std::span<const Tensor> parts, int axis = 0);
Tensor stack(std::initializer_list<Tensor> parts, int axis = 0);
/// A copy of the elements [begin, end) along an axis, 0 <= begin <= end <= extent.
Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end);
/// Element i of y is the element of x with the same indices, except that along the axis its index is ids[i]: ids is
/// int32 with the shape of x except along the axis, and y has the shape of ids. The gradients of an element that is
/// gathered several times are added in the order of the ids. Throws Error if an id is outside [0, extent of the axis).
Tensor gather(const Tensor& x, int axis, const Tensor& ids);
// reshape() is declared in tensor.h: it makes a new handle to the same elements and records nothing.

// --- normalisation (ops/norm.cpp) ---

/// Softmax and its logarithm over the last axis: [… C] → [… C]. A row that contains NaN or +Inf, or nothing but −Inf,
/// becomes NaN throughout.
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);
/// (x − mean) / sqrt(var + eps) · weight + bias over the last axis: x [… C], weight [C] or none, bias [C] or none →
/// [… C]. var is the biased variance. Throws Error unless 0 <= eps <= 1. Ba, Kiros and Hinton 2016, arXiv:1607.06450.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
/// x / sqrt(mean(x²) + eps) · weight over the last axis: x [… C], weight [C] or none → [… C]. Throws Error unless
/// 0 <= eps <= 1. Zhang and Sennrich 2019, arXiv:1910.07467.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-5);
/// rms_norm() of each head: x [… W], weight [K] → [… W]. The first K <= W columns are `heads` heads of equal size; each
/// is a row of its own that is normalized and multiplied by its part of the weight. The other columns are copied. With
/// K = 2C and heads = 2 · n_head, it normalizes q and k of packed q‖k‖v. Throws Error unless heads >= 1 divides K, and
/// for an eps outside [0, 1].
Tensor rms_norm_heads(const Tensor& x, const Tensor& weight, std::int64_t heads, double eps = 1e-5);

// --- tokens and losses (ops/loss.cpp) ---

/// Looks up rows of a table: table [V, C], ids […] int32 → [… C]. Throws Error if an id is outside [0, V).
/// Requires: fewer than 2^31 ids, here and in embedding_sum().
Tensor embedding(const Tensor& table, const Tensor& ids);
/// The sum of several rows of a table: table [V, C], ids [… K] int32 → [… C], in the order of the last axis of ids. An
/// id of −1 stands for no row. The table may be a parameter of ParamGroup::rows; forward and backward then touch only
/// the rows that ids name, while after any other op that reads such a parameter backward() throws Error. Throws Error
/// if an id is outside [−1, V). (ops/embedding_sum.cpp)
Tensor embedding_sum(const Tensor& table, const Tensor& ids);

/// 1 at index ids[i] of row i, 0 elsewhere: ids […] int32 → […, classes]. It has no gradient. Throws Error if an id is
/// outside [0, classes).
Tensor one_hot(const Tensor& ids, std::int64_t classes, DType dtype = DType::float32);

struct MeanSquaredError {
  bool sum = false;  ///< return the sum over the elements instead of the mean
};
/// The mean of (prediction − target)² over all elements, 0 if there are none: […], […] → []. Throws Error unless both
/// have the same shape.
Tensor mse(const Tensor& prediction, const Tensor& target, const MeanSquaredError& options = {});

struct CrossEntropy {
  std::int32_t ignored = -1;   ///< positions with this target contribute neither to the loss nor to the count
  double label_smoothing = 0;  ///< ε in [0, 1]: the target has weight 1 − ε + ε/V, every other id ε/V
  bool sum = false;            ///< return the sum over the targets instead of the mean
};
/// −Σ weight · log softmax(logits) in nats, averaged over the targets that are not ignored (0 if all are): logits
/// [… V], targets […] int32 → []. Throws Error if a target is neither `ignored` nor in [0, V).
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropy& options = {});
/// −Σ expected · log softmax(logits) in nats, summed over all rows: logits [… V], expected [… V] → []. Each row of
/// `expected` is a distribution, or zeros if the row does not count; no gradient flows to it. Throws Error unless both
/// have the same shape and type.
Tensor expected_cross_entropy(const Tensor& logits, const Tensor& expected);
/// The most memory that linear_cross_entropy() takes for logits, unless fewer than 128 rows fit into it: logits that
/// fit are computed once instead of twice. 333 rows of GPT-2's vocabulary do, and beside such a model 64 MiB are
/// little.
inline constexpr std::int64_t kMaxLogitsBytes = std::int64_t{64} << 20;
/// cross_entropy(linear(x, weight), targets, options): x [… C], weight [V, C], targets […] int32 → []. Up to
/// kMaxLogitsBytes of logits, or those of 128 rows, are kept for backward, which overwrites them with their gradient.
/// If they are larger, they are computed in chunks of at most this size, and again in backward. The gradients are
/// bit-identical either way.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& targets,
                            const CrossEntropy& options = {});

// --- convolution (ops/short_conv.cpp) ---

/// A convolution over tokens, of every column for itself: y_t = Σ_k weight_k · x_{t+ahead−k} over k = 0 … K − 1,
/// without tokens that the sequence does not have. With `ahead` = 0 no token sees a later one; with (K − 1) / 2 it sees
/// as many after as before it. x [B, T, C], weight [K, C] → [B, T, C]. `before` [B, m, C], m < K, are the tokens before
/// x, as in generation; the result is then that of both together, bit for bit. Throws Error unless 0 <= ahead < K, and
/// if there is `before`, for an `ahead` above 0 and inside a Recording, because it has no gradient.
Tensor short_conv(const Tensor& x, const Tensor& weight, std::int64_t ahead = 0, const Tensor& before = {});

// --- attention (ops/attention.cpp, ops/rotary.cpp, …) ---

/// Rotates heads by the angles of their positions: x [B, T, W] → [B, T, W], angles [T, D] → the first `heads` · D
/// columns of x are rotated head by head, the others copied. Columns i and i + D/2 of a head are the coordinates of a
/// plane, and its angle at token t has the cosine angles[t, i] and the sine angles[t, i + D/2]; rotary_angles() of
/// nn/positions.h computes them for any range of positions. With heads = 2 · n_head, it rotates q and k of packed
/// q‖k‖v. No gradient flows to the angles. Throws Error if D is odd. Su et al. 2021, arXiv:2104.09864.
Tensor rotary(const Tensor& x, const Tensor& angles, std::int64_t heads);

/// Options of attention() over T queries and S keys.
struct Attention {
  std::int64_t n_head = 1;  ///< H, must divide C
  /// K, must divide n_head: keys and values have K heads of D columns, and head h of the queries attends to their head
  /// h·K/H. Ainslie et al. 2023, arXiv:2305.13245. 0: n_head, so every head has keys and values of its own.
  std::int64_t n_kv_head = 0;
  bool causal = false;   ///< query t attends only to keys 0 … t + S − T, so the last query attends to all of them
  Tensor key_mask = {};  ///< [B, S] int32, 0 where a key must be ignored; empty: no key is masked
  /// [T, S] or [B, T, S] int32, 0 where the query must ignore the key; empty: no pair is masked. Fast for masks with
  /// few different rows, such as those of packed documents or of a prefix; otherwise several times slower than without
  /// one.
  Tensor mask = {};
  double dropout = 0;  ///< probability in [0, 1) of dropping an attention weight; only inside a Recording
  double scale = 0;    ///< factor of q·k; 0: 1/√(C / n_head)
  /// S, if k‖v has more rows than that, of which only the first S are keys, as in a cache that is not full; the
  /// gradient of the others is 0. 0: every row is a key. Only for separate q and k‖v.
  std::int64_t keys = 0;

  /// K.
  std::int64_t kv_heads() const { return n_kv_head == 0 ? n_head : n_kv_head; }
};
/// softmax(scale · q kᵀ) v for each head; head h is columns h·D … (h+1)·D of q, k and v, with D = C / n_head. Vaswani
/// et al. 2017, arXiv:1706.03762, eq. 1; computed in tiles with an online softmax (Dao et al. 2022, arXiv:2205.14135),
/// so that memory is O(T). A query that attends to no key gives zeros and no gradient. This overload is self-attention
/// over the packed projection q‖k‖v: [B, T, 3C] → [B, T, C]; with n_kv_head it is [B, T, (H + 2K)·D].
Tensor attention(const Tensor& qkv, const Attention& options);
/// Attention of queries q [B, T, C] to packed keys and values k‖v [B, S, 2C] → [B, T, C]; with n_kv_head, k‖v is
/// [B, S, 2K·D].
Tensor attention(const Tensor& q, const Tensor& kv, const Attention& options);

/// Options of relative_attention() over T queries and S >= T keys.
struct RelativeAttention {
  std::int64_t n_head = 1;  ///< must divide C
  double dropout = 0;       ///< as in Attention
  double scale = 0;         ///< as in Attention
  std::int64_t keys = 0;    ///< as in Attention
};
/// Causal attention by content and distance. The score of query t and key s at the distance d = t + S − T − s >= 0 is,
/// for each head, scale · ((q_t + u)·k_s + (q_t + v)·r_d); the keys before the queries are those of a memory. q [B, T,
/// C], k‖v [B, S, 2C], r [S or more, C], u [C], v [C] → [B, T, C]. r is W_r R in the paper: row d is the projected
/// encoding of distance d. Memory is O(T + S) per head. Dai et al. 2019, arXiv:1901.02860, section 3.3.
/// (ops/relative_attention.cpp)
Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, const Tensor& u, const Tensor& v,
                          const RelativeAttention& options);

/// Options of linear_attention().
struct LinearAttention {
  std::int64_t n_head = 1;  ///< must divide the columns of q, k and v
  bool causal = true;       ///< query t attends only to keys 0 … t, and there are as many queries as keys
  double floor = 0;         ///< lower bound, above 0, of the denominators; 0: none, so they may be 0 or negative
  std::int64_t chunk = 0;   ///< tokens that are processed together; changes only rounding and speed; 0: 64
};
/// Attention whose weights are inner products of features, for each head: y_t = Σ_s (q_t·k_s) v_s / max(Σ_s q_t·k_s,
/// floor), in time and memory linear in T. q [B, T, H·F] and k [B, S, H·F] are features, usually positive ones such as
/// elu_plus_one(); v [B, S, H·D] → [B, T, H·D]; head h is the h-th of H = n_head equal parts of the columns. Without
/// keys the result is 0. Katharopoulos et al. 2020, arXiv:2006.16236, eq. 9.
Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttention& options);

/// What linear attention keeps of the tokens it has read: Σ k_s v_sᵀ [B, H, F, D] and Σ k_s [B, H, F].
struct LinearAttentionSums {
  Tensor products, keys;
};
/// Linear attention of tokens that follow those of `sums`, to which they are then added in place: other handles of the
/// two tensors see it. Before the first token, the sums are zeros. Throws Error inside a Recording, because it has no
/// gradient, and unless `options` are causal.
Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttention& options,
                        LinearAttentionSums& sums);

}  // namespace maki
