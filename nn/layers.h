// The layers a Transformer is made of: plain structs with a const call operator. Shapes: B sequences of T tokens, C
// wide.
#pragma once

#include "autograd/ops.h"
#include "nn/scope.h"

namespace maki {

/// GPT-2's deviation of initial weights.
inline constexpr double kInitStd = 0.02;

/// y = x · weightᵀ + bias: [… in] → [… out]. weight [out, in], bias [out] or none.
struct Linear {
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias = true, double std = 0);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
};

/// Rows of a table: ids […] → [… C]. weight [V, C].
struct Embedding {
  Embedding(const Scope& scope, std::int64_t rows, std::int64_t cols, double std = kInitStd);
  Tensor operator()(const Tensor& ids) const { return embedding(weight, ids); }

  Parameter& weight;
};

/// Layer normalisation over the last axis, weight [C] and bias [C] or none. Ba, Kiros and Hinton 2016,
/// arXiv:1607.06450.
struct LayerNorm {
  LayerNorm(const Scope& scope, std::int64_t cols, bool with_bias = true, double epsilon = 1e-5);
  Tensor operator()(const Tensor& x) const;

  Parameter& weight;
  Parameter* bias;
  double eps;
};

/// Zeroes each element with probability p in a Recording, scaling the rest; identity otherwise.
struct Dropout {
  double p = 0;
  Tensor operator()(const Tensor& x) const { return p > 0 ? dropout(x, p) : x; }
};

enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, silu };
Tensor activate(const Tensor& x, Activation activation);

}  // namespace maki
