// The layers a Transformer is made of: plain structs with a const call operator. Shapes: B sequences of T tokens, C
// wide; "…" is any number of leading axes.
#pragma once

#include <array>
#include <string_view>

#include "autograd/ops.h"
#include "nn/scope.h"

namespace maki {

/// GPT-2's deviation of initial weights.
inline constexpr double kInitStd = 0.02;

/// y = x · weightᵀ + bias: [… in] → [… out]. weight [out, in], bias [out] or none. Initial weights are N(0, std);
/// without a deviation uniform in ±1/√in, PyTorch's default for a linear layer on its own. Biases begin at 0.
struct Linear {
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias = true, double std = 0);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
};

/// Rows of a table: ids […] int32 → [… C]. weight [V, C], at first N(0, std).
struct Embedding {
  Embedding(const Scope& scope, std::int64_t rows, std::int64_t cols, double std = kInitStd);
  Tensor operator()(const Tensor& ids) const { return embedding(weight, ids); }

  Parameter& weight;
};

/// (x − mean) / √(var + eps) · weight + bias over the last axis: [… C] → [… C]. weight [C], at first 1; bias [C], at
/// first 0, or none. Ba, Kiros and Hinton 2016, arXiv:1607.06450.
struct LayerNorm {
  LayerNorm(const Scope& scope, std::int64_t cols, bool with_bias = true, double epsilon = 1e-5);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
  double eps;
};

/// In a Recording, zeroes each element with probability p and divides the rest by 1 − p; identity otherwise. Srivastava
/// et al. 2014.
struct Dropout {
  double p = 0;
  Tensor operator()(const Tensor& x) const { return p > 0 ? dropout(x, p) : x; }
};

/// The nonlinearity inside a feed-forward network: […] → […], element by element. Formulas in autograd/ops.h.
enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, silu };
inline constexpr std::array kActivations = {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                                            Activation::silu};
const char* to_string(Activation activation);
/// Throws, naming the nearest, for another word.
Activation activation_named(std::string_view name);
/// activation(layer(x)): what gelu is needed for is done while the product is at hand.
Tensor activate(const Tensor& x, const Linear& layer, Activation activation);

}  // namespace maki
