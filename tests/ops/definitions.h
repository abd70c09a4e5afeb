// Every op of autograd/ops.h by its definition, in extended precision: plain loops over complex numbers, which share
// only shapes with the engine. They say what the value of an op is and, by a complex step, what its gradient is:
//   f'(x) = Im f(x + ih) / h  for an analytic f.
// Nothing is subtracted, so h can be so small that both the error, O(h²), and the influence on the value vanish.
// Squire and Trapp 1998, "Using complex variables to estimate derivatives of real functions".
// Comparisons look at the real part; the functions are then analytic everywhere but at kinks.
//
// Names and arguments are those of ops.h, so that one generic lambda calls either. Shapes are not checked.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/ops.h"
#include "autograd/tape.h"

namespace maki::tests::definitions {

/// The context of every recording of an op and of its definition, so that dropout draws the same mask.
inline constexpr RandomContext kRandom{.seed = 7};

using Number = std::complex<long double>;

/// The numbers of a tensor. An Exact() stands for an absent input.
class Exact {
 public:
  Exact() = default;
  explicit Exact(const Shape& shape)
      : present_(true), shape_(shape), values_(static_cast<std::size_t>(shape.numel())) {}
  explicit Exact(const Tensor& x);

  explicit operator bool() const { return present_; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return DType::float64; }
  std::int64_t numel() const { return shape_.numel(); }
  const Number& operator[](std::int64_t i) const { return values_[static_cast<std::size_t>(i)]; }
  Number& operator[](std::int64_t i) { return values_[static_cast<std::size_t>(i)]; }
  /// Element i of ids or a mask.
  std::int64_t integer(std::int64_t i) const { return static_cast<std::int64_t>((*this)[i].real()); }

 private:
  bool present_ = false;  // unlike an absent input, one with a size of 0 has a shape
  Shape shape_;
  std::vector<Number> values_;
};

/// The derivative of value(), a Number computed from the elements of x, by each of these elements: a complex step of
/// one after the other. x ends as it was.
template <class Value>
Tensor complex_steps(Exact& x, const Value& value) {
  constexpr double kStep = 1e-30;  // its square is far below the rounding of any number that is added to it
  Tensor gradient = empty(x.shape(), DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const Number before = x[i];
    x[i] += Number(0, kStep);
    gradient.data<double>()[i] = static_cast<double>(value().imag() / kStep);
    x[i] = before;
  }
  return gradient;
}

/// A mask as the options of an op take it.
inline const Tensor& mask_tensor(const Tensor& mask) { return mask; }
Tensor mask_tensor(const Exact& mask);

// --- definitions_elementwise.cpp ---
Exact add(const Exact& a, const Exact& b);
Exact sub(const Exact& a, const Exact& b);
Exact mul(const Exact& a, const Exact& b);
Exact div(const Exact& a, const Exact& b);
Exact add_gated(const Exact& a, const Exact& b, const Exact& gate);
Exact where(const Exact& mask, const Exact& a, const Exact& b);
Exact neg(const Exact& x);
Exact scale(const Exact& x, double factor);
Exact exp(const Exact& x);
Exact log(const Exact& x);
Exact sqrt(const Exact& x);
Exact tanh(const Exact& x);
Exact sigmoid(const Exact& x);
Exact relu(const Exact& x);
Exact relu_squared(const Exact& x);
Exact silu(const Exact& x);
Exact elu_plus_one(const Exact& x);
Exact gelu(const Exact& x, Gelu form = Gelu::erf);
Exact swiglu(const Exact& x);
Exact abs(const Exact& x);
Exact pow(const Exact& x, double exponent);
Exact clamp(const Exact& x, double low, double high);
Exact convert(const Exact& x, DType dtype);
Exact dropout(const Exact& x, double p);

// --- definitions_layout.cpp ---
Exact sum(const Exact& x, std::span<const int> axes, bool keep_axes);
Exact mean(const Exact& x, std::span<const int> axes, bool keep_axes);
Exact max(const Exact& x, int axis, bool keep_axis);
Exact argmax(const Exact& x, int axis, bool keep_axis);
Exact transpose(const Exact& x, int axis_a, int axis_b);
Exact concat(std::span<const Exact> parts, int axis);
Exact stack(std::span<const Exact> parts, int axis);
Exact slice(const Exact& x, int axis, std::int64_t begin, std::int64_t end);
Exact gather(const Exact& x, int axis, const Exact& ids);

// --- definitions.cpp ---
Exact matmul(const Exact& a, const Exact& b, bool transpose_a = false, bool transpose_b = false);
Exact linear(const Exact& x, const Exact& weight, const Exact& bias = {});
Exact linear_gelu(const Exact& x, const Exact& weight, const Exact& bias, Gelu form);
Exact gelu_feed_forward(const Exact& x, const Exact& up, const Exact& up_bias, const Exact& down,
                        const Exact& down_bias, Gelu form);
Exact short_conv(const Exact& x, const Exact& weight, std::int64_t ahead = 0);
Exact softmax(const Exact& x);
Exact log_softmax(const Exact& x);
Exact layer_norm(const Exact& x, const Exact& weight, const Exact& bias, double eps = 1e-5);
Exact rms_norm(const Exact& x, const Exact& weight, double eps = 1e-5);
Exact rms_norm_heads(const Exact& x, const Exact& weight, std::int64_t heads, double eps = 1e-5);
Exact embedding(const Exact& table, const Exact& ids);
Exact embedding_sum(const Exact& table, const Exact& ids);
Exact one_hot(const Exact& ids, std::int64_t classes);
Exact mse(const Exact& prediction, const Exact& target, const MeanSquaredError& options);
Exact cross_entropy(const Exact& logits, const Exact& targets, const CrossEntropy& options = {});
Exact expected_cross_entropy(const Exact& logits, const Tensor& expected);
Exact linear_cross_entropy(const Exact& x, const Exact& weight, const Exact& targets, const CrossEntropy& options = {});

// --- definitions_attention.cpp ---
Exact rotary(const Exact& x, const Tensor& angles, std::int64_t heads);
Exact attention(const Exact& qkv, const Attention& options);
Exact attention(const Exact& q, const Exact& kv, const Attention& options);
Exact relative_attention(const Exact& q, const Exact& kv, const Exact& r, const Exact& u, const Exact& v,
                         const RelativeAttention& options);
Exact linear_attention(const Exact& q, const Exact& k, const Exact& v, const LinearAttention& options);

}  // namespace maki::tests::definitions
