// The layers of a Transformer: plain structs with a const call operator. Each creates its parameters below the scope
// that it is given and refers to them, so the scope's store must outlive it and must be sealed before a layer is
// called. Shapes: B sequences of T tokens of width C; "…" is any number of leading axes.
//
// Thread safety: layers may be called on several threads at once while no value of their store changes; each thread
// that records needs a tape of its own, and only one thread may run backward into a store.
#pragma once

#include <array>
#include <optional>
#include <variant>

#include "autograd/ops.h"
#include "nn/low_rank.h"
#include "nn/scope.h"

namespace maki {

/// The standard deviation of initial weights in GPT-2.
inline constexpr double kInitStd = 0.02;
/// What GPT-2's layer norm adds to the variance, and maki's RMS norm to the mean square.
inline constexpr double kNormEpsilon = 1e-5;
/// The argument `matrices` of a Linear whose rows belong to tokens or classes, as those of an embedding do.
inline constexpr std::int64_t kOutputLayer = 0;

/// y = x · weightᵀ + bias: [… in] → [… out], with weight [out, in] and bias [out] or none. Initial weights are those
/// of `weights` or, without one, drawn uniformly from ±1/√in, PyTorch's default for a linear layer. Initial biases are
/// 0. If the scope wants an adapter (nn/low_rank.h), its output is added; output layers never
/// get one.
struct Linear {
  /// `matrices`: how many maps are stacked in the weight, 3 for packed q‖k‖v, 2 for gate‖up; 0 (kOutputLayer) for an
  /// output layer (Parameter::matrices()).
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias = true,
         std::optional<Initializer> weights = std::nullopt, std::int64_t matrices = 1);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
  std::optional<LowRankAdapter> adapter;
};

/// Looks up rows of a table: ids […] int32 → [… C], with weight [V, C], initially drawn from N(0, std²). Throws Error
/// if an id is outside [0, V).
struct Embedding {
  /// `is_head`: the weight is also an output head, by which every token is multiplied (Parameter::multiplied()).
  Embedding(const Scope& scope, std::int64_t rows, std::int64_t cols, double std = kInitStd, bool is_head = false);
  Tensor operator()(const Tensor& ids) const { return embedding(weight, ids); }

  Parameter& weight;
};

/// (x − mean) / √(var + eps) · weight + bias over the last axis: [… C] → [… C], with weight [C], initially 1, and bias
/// [C], initially 0, or none. Ba, Kiros and Hinton 2016, arXiv:1607.06450.
struct LayerNorm {
  LayerNorm(const Scope& scope, std::int64_t cols, bool with_bias = true, double epsilon = kNormEpsilon);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
  double eps;
};

/// x / √(mean(x²) + eps) · weight over the last axis: [… C] → [… C], with weight [C], initially 1. Zhang and Sennrich
/// 2019, arXiv:1910.07467.
struct RmsNorm {
  RmsNorm(const Scope& scope, std::int64_t cols, double epsilon = kNormEpsilon);
  Tensor operator()(const Tensor& x) const { return rms_norm(x, weight, eps); }

  Parameter& weight;
  double eps;
};

enum class NormKind : std::uint8_t { layer, rms };
inline constexpr std::array kNormKinds = {NormKind::layer, NormKind::rms};
/// "layer" or "rms".
const char* to_string(NormKind kind);

/// A LayerNorm or an RmsNorm (which has no bias): [… C] → [… C].
struct Norm {
  Norm(const Scope& scope, std::int64_t cols, NormKind kind, bool with_bias = true, double epsilon = kNormEpsilon);
  Tensor operator()(const Tensor& x) const {
    return std::visit([&](const auto& norm) { return norm(x); }, form);
  }

  std::variant<LayerNorm, RmsNorm> form;
};

/// Inside a Recording, sets each element to 0 with probability p and divides the others by 1 − p; elsewhere the
/// identity. Srivastava et al. 2014.
struct Dropout {
  double p = 0;
  Tensor operator()(const Tensor& x) const { return p > 0 ? dropout(x, p) : x; }
};

/// The nonlinearity of a feed-forward network. Formulas: autograd/ops.h. All are applied element by element, except
/// that swiglu takes packed gate‖up, twice as many columns as it returns.
enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, relu_squared, silu, swiglu };
inline constexpr std::array kActivations = {Activation::gelu,         Activation::gelu_tanh, Activation::relu,
                                            Activation::relu_squared, Activation::silu,      Activation::swiglu};
/// "gelu", "gelu_tanh", "relu", "relu_squared", "silu" or "swiglu".
const char* to_string(Activation activation);
/// Columns that the activation takes for each column that it returns.
constexpr std::int64_t columns_per_output(Activation activation) { return activation == Activation::swiglu ? 2 : 1; }
/// activation(layer(x)). Both forms of gelu are computed in one pass with the product (linear_gelu()), unless the layer
/// has an adapter.
Tensor activate(const Tensor& x, const Linear& layer, Activation activation);
/// down(activate(x, up, activation)). With gelu in either form, one op computes both layers (gelu_feed_forward()),
/// unless one has an adapter.
Tensor feed_forward(const Tensor& x, const Linear& up, Activation activation, const Linear& down);

}  // namespace maki
