#include "nn/layers.h"

#include <cmath>

#include "autograd/core/check.h"

namespace maki {
namespace {

Parameter* bias_or_none(const Scope& scope, std::int64_t size, bool wanted) {
  return wanted ? &scope.parameter("bias", {size}, init::constant(0)) : nullptr;
}

Initializer usual_weights(std::int64_t in) { return init::uniform(1 / std::sqrt(static_cast<double>(in))); }

}  // namespace

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias,
               std::optional<Initializer> weights, std::int64_t matrices)
    : weight(scope.parameter("weight", {out, in}, weights ? *std::move(weights) : usual_weights(in), matrices)),
      bias(bias_or_none(scope, out, with_bias)),
      adapter(adapter_of(scope, in, out, matrices)) {}

Tensor Linear::operator()(const Tensor& x) const {
  const Tensor y = linear(x, weight, bias ? bias->value() : Tensor());
  return adapter ? add(y, (*adapter)(x)) : y;
}

Embedding::Embedding(const Scope& scope, std::int64_t rows, std::int64_t cols, double std, bool is_head)
    : weight(scope.parameter("weight", {rows, cols}, init::normal(std))) {
  weight.set_multiplied(is_head);
}

LayerNorm::LayerNorm(const Scope& scope, std::int64_t cols, bool with_bias, double epsilon)
    : weight(scope.parameter("weight", {cols}, init::constant(1))),
      bias(bias_or_none(scope, cols, with_bias)),
      eps(epsilon) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return layer_norm(x, weight, bias ? bias->value() : Tensor(), eps);
}

RmsNorm::RmsNorm(const Scope& scope, std::int64_t cols, double epsilon)
    : weight(scope.parameter("weight", {cols}, init::constant(1))), eps(epsilon) {}

const char* to_string(NormKind kind) { return kind == NormKind::layer ? "layer" : "rms"; }

Norm::Norm(const Scope& scope, std::int64_t cols, NormKind kind, bool with_bias, double epsilon)
    : form(kind == NormKind::layer
               ? std::variant<LayerNorm, RmsNorm>(std::in_place_type<LayerNorm>, scope, cols, with_bias, epsilon)
               : std::variant<LayerNorm, RmsNorm>(std::in_place_type<RmsNorm>, scope, cols, epsilon)) {}

const char* to_string(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::relu:
      return "relu";
    case Activation::relu_squared:
      return "relu_squared";
    case Activation::silu:
      return "silu";
    case Activation::swiglu:
      return "swiglu";
  }
  return "";
}

namespace {

Tensor bias_of(const Linear& layer) { return layer.bias ? layer.bias->value() : Tensor(); }

Tensor gelu_of(const Tensor& x, const Linear& layer, Gelu form) {
  if (layer.adapter) return gelu(layer(x), form);
  return linear_gelu(x, layer.weight, bias_of(layer), form);
}

}  // namespace

Tensor activate(const Tensor& x, const Linear& layer, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return gelu_of(x, layer, Gelu::erf);
    case Activation::gelu_tanh:
      return gelu_of(x, layer, Gelu::tanh);
    case Activation::relu:
      return relu(layer(x));
    case Activation::relu_squared:
      return relu_squared(layer(x));
    case Activation::silu:
      return silu(layer(x));
    case Activation::swiglu:
      return swiglu(layer(x));
  }
  fail("activation: unknown value {}", static_cast<int>(activation));
}

Tensor feed_forward(const Tensor& x, const Linear& up, Activation activation, const Linear& down) {
  const bool is_gelu = activation == Activation::gelu || activation == Activation::gelu_tanh;
  if (!is_gelu || up.adapter || down.adapter) return down(activate(x, up, activation));
  return gelu_feed_forward(x, up.weight, bias_of(up), down.weight, bias_of(down),
                           activation == Activation::gelu ? Gelu::erf : Gelu::tanh);
}

}  // namespace maki
