#include "nn/layers.h"

#include <cmath>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/nearest.h"

namespace maki {
namespace {

Parameter* bias_or_none(const Scope& scope, std::int64_t size, bool wanted) {
  return wanted ? &scope.parameter("bias", {size}, init::constant(0)) : nullptr;
}

}  // namespace

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias, double std)
    : weight(scope.parameter("weight", {out, in},
                             std > 0 ? init::normal(std) : init::uniform(1 / std::sqrt(static_cast<double>(in))))),
      bias(bias_or_none(scope, out, with_bias)) {}

Tensor Linear::operator()(const Tensor& x) const { return linear(x, weight, bias ? bias->value() : Tensor()); }

Embedding::Embedding(const Scope& scope, std::int64_t rows, std::int64_t cols, double std)
    : weight(scope.parameter("weight", {rows, cols}, init::normal(std))) {}

LayerNorm::LayerNorm(const Scope& scope, std::int64_t cols, bool with_bias, double epsilon)
    : weight(scope.parameter("weight", {cols}, init::constant(1))),
      bias(bias_or_none(scope, cols, with_bias)),
      eps(epsilon) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return layer_norm(x, weight, bias ? bias->value() : Tensor(), eps);
}

const char* to_string(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
  }
  return "";
}

Activation activation_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Activation activation : kActivations) {
    if (name == to_string(activation)) return activation;
    names.emplace_back(to_string(activation));
  }
  fail("activation: must be one of {}; got {}{}", fmt::join(names, ", "), name, nearest_hint(name, names));
}

Tensor activate(const Tensor& x, const Linear& layer, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return linear_gelu(x, layer.weight, layer.bias ? layer.bias->value() : Tensor(), Gelu::erf);
    case Activation::gelu_tanh:
      return linear_gelu(x, layer.weight, layer.bias ? layer.bias->value() : Tensor(), Gelu::tanh);
    case Activation::relu:
      return relu(layer(x));
    case Activation::silu:
      return silu(layer(x));
  }
  fail("activation: unknown value {}", static_cast<int>(activation));
}

}  // namespace maki
