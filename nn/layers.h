// The layers of a Transformer: plain structs with a const call operator. Each creates its parameters below the scope
// that it is given and refers to them, so the scope's store must outlive it and must be sealed before a layer is
// called. Shapes: B sequences of T tokens of width C; "…" is any number of leading axes.
//
// Thread safety: layers may be called on several threads at once while no value of their store changes; each thread
// that records needs a tape of its own, and only one thread may run backward into a store.
#pragma once

#include <array>
#include <string_view>

#include "autograd/ops.h"
#include "nn/scope.h"

namespace maki {

/// The standard deviation of initial weights in GPT-2.
inline constexpr double kInitStd = 0.02;

/// y = x · weightᵀ + bias: [… in] → [… out], with weight [out, in] and bias [out] or none. Initial weights are drawn
/// from N(0, std²) or, if std is 0, uniformly from ±1/√in, PyTorch's default for a linear layer. Initial biases are 0.
struct Linear {
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias = true, double std = 0);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
};

/// Looks up rows of a table: ids […] int32 → [… C], with weight [V, C], initially drawn from N(0, std²). Throws Error
/// if an id is outside [0, V).
struct Embedding {
  Embedding(const Scope& scope, std::int64_t rows, std::int64_t cols, double std = kInitStd);
  Tensor operator()(const Tensor& ids) const { return embedding(weight, ids); }

  Parameter& weight;
};

/// (x − mean) / √(var + eps) · weight + bias over the last axis: [… C] → [… C], with weight [C], initially 1, and bias
/// [C], initially 0, or none. Ba, Kiros and Hinton 2016, arXiv:1607.06450.
struct LayerNorm {
  LayerNorm(const Scope& scope, std::int64_t cols, bool with_bias = true, double epsilon = 1e-5);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
  double eps;
};

/// Inside a Recording, sets each element to 0 with probability p and divides the others by 1 − p; elsewhere the
/// identity. Srivastava et al. 2014.
struct Dropout {
  double p = 0;
  Tensor operator()(const Tensor& x) const { return p > 0 ? dropout(x, p) : x; }
};

/// The nonlinearity of a feed-forward network, applied element by element. Formulas: autograd/ops.h.
enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, silu };
inline constexpr std::array kActivations = {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                                            Activation::silu};
/// "gelu", "gelu_tanh", "relu" or "silu".
const char* to_string(Activation activation);
/// The inverse of to_string(). Throws Error, suggesting the most similar name, for any other word.
Activation activation_named(std::string_view name);
/// activation(layer(x)). Both forms of gelu are computed in one pass with the product (linear_gelu()).
Tensor activate(const Tensor& x, const Linear& layer, Activation activation);

}  // namespace maki
