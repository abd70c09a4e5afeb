// Matrix products with scratch memory from the pool, and the three products of a linear layer, which several ops share.
#pragma once

#include <span>
#include <type_traits>

#include "autograd/core/sink.h"
#include "autograd/core/storage.h"
#include "autograd/kernels/column_sum.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/parameter.h"
#include "autograd/recording.h"
#include "autograd/tape.h"

namespace maki {

/// Whether products of T in a backward pass, or in a forward pass that is recorded, round their operands.
template <class T>
bool recorded_products_round() {
  return std::is_same_v<T, float> && ProductPrecision::current() == Precision::bfloat16;
}

/// Makes g a product of a recorded op or of its backward pass, or of neither: chooses how it rounds.
template <class T>
void round_as_recorded(kernels::Gemm<T>& g, bool recorded) {
  g.recorded = recorded;
  g.rounds_operands = recorded && recorded_products_round<T>();
}

/// Runs a product (kernels/gemm/gemm.h) and allocates the scratch memory that it needs.
template <class T>
void run(const kernels::Gemm<T>& g) {
  const std::int64_t bytes = kernels::gemm_scratch_bytes(g);
  const Storage scratch(bytes);
  kernels::gemm(g, std::span(scratch.data(), static_cast<std::size_t>(bytes)));
}

/// The sizes of y [rows, out] = x [rows, in] · weight [out, in]ᵀ; `whole` as in Gemm, for an op that computes y in
/// parts.
struct LinearShape {
  std::int64_t rows, in, out;
  kernels::GemmSizes whole{};
  std::int64_t stride = 0;  // elements between rows of y or dy; 0: out
  std::int64_t y_stride() const { return stride > 0 ? stride : out; }
};

/// An operand, for parameters that T is not deduced from, so that they take plain arrays as well.
template <class T>
using AnyOperand = std::type_identity_t<kernels::GemmOperand<T>>;

/// The weight of a linear layer as an operand of a product that is `recorded` or not: the rounded copy of a parameter,
/// if there is one and the product rounds.
template <class T>
kernels::GemmOperand<T> weight_operand(const Tensor& weight, bool recorded) {
  const Parameter* const parameter = weight.link().value_of;
  if (recorded && recorded_products_round<T>() && parameter != nullptr) {
    if (const BFloat16* const rounded = parameter->rounded()) return rounded;
  }
  return weight.data<T>();
}

/// The weight of a linear layer as an operand of a forward pass: the 8-bit copy of a parameter, if there is one and
/// nothing is recorded; else what weight_operand() chooses.
template <class T>
kernels::GemmOperand<T> forward_weight(const Tensor& weight) {
  const Parameter* const parameter = weight.link().value_of;
  if (parameter != nullptr && Tape::current() == nullptr) {
    const Int8Matrix* const int8 = parameter->int8();
    if (int8 != nullptr && weight.shape() == parameter->shape()) return int8;
  }
  return weight_operand<T>(weight, rounds_as_recorded());
}

/// The product x · weightᵀ. The caller still has to set the output `c` and, if wanted, bias and activation.
template <class T>
kernels::Gemm<T> linear_product(const LinearShape& s, AnyOperand<T> x, kernels::GemmOperand<T> weight, bool recorded) {
  kernels::Gemm<T> g{.m = s.rows, .n = s.out, .k = s.in, .a = x, .lda = s.in, .b = weight, .ldb = s.in};
  g.b_transposed = true;
  g.ldc = s.y_stride();
  round_as_recorded(g, recorded && weight.int8 == nullptr);
  g.whole = s.whole;
  return g;
}

/// dx = dy · weight; the caller of the first form sets the output.
template <class T>
kernels::Gemm<T> linear_backward_x_product(const LinearShape& s, AnyOperand<T> dy, kernels::GemmOperand<T> weight) {
  kernels::Gemm<T> g{.m = s.rows, .n = s.in, .k = s.out, .a = dy, .lda = s.y_stride(), .b = weight, .ldb = s.in};
  round_as_recorded(g, true);
  g.whole = s.whole;
  g.ldc = s.in;
  return g;
}
template <class T>
void linear_backward_x(const LinearShape& s, AnyOperand<T> dy, kernels::GemmOperand<T> weight, Sink<T> dx) {
  kernels::Gemm<T> g = linear_backward_x_product(s, dy, weight);
  g.c = dx.data;
  g.beta = dx.add ? 1 : 0;
  run(g);
}

/// dweight = dyᵀ · x.
template <class T>
void linear_backward_weight(const LinearShape& s, AnyOperand<T> dy, AnyOperand<T> x, Sink<T> dweight) {
  kernels::Gemm<T> g{.m = s.out, .n = s.in, .k = s.rows, .a = dy, .lda = s.y_stride(), .a_transposed = true};
  g.b = x;
  g.ldb = s.in;
  round_as_recorded(g, true);
  g.whole = s.whole;
  g.c = dweight.data;
  g.ldc = s.in;
  g.beta = dweight.add ? 1 : 0;
  run(g);
}

/// dbias = the column sums of dy, which are rounded like the operands of the products.
template <class T>
void linear_backward_bias(const LinearShape& s, AnyOperand<T> dy, Sink<T> dbias) {
  if constexpr (std::is_same_v<T, float>) {
    if (dy.rounded != nullptr) return kernels::rounded_column_sum(s.rows, s.out, dy.rounded, s.out, dbias);
    if (recorded_products_round<T>()) {
      return kernels::rounded_column_sum(s.rows, s.out, dy.values, s.out, dbias);
    }
  }
  kernels::column_sum(s.rows, s.out, dy.values, s.out, dbias);
}

}  // namespace maki
