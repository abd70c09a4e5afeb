// LoRA: a linear map is adapted by adding a product of two narrow matrices to it, and only these are trained. Hu et al.
// 2021, arXiv:2106.09685.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "autograd/ops.h"
#include "nn/scope.h"

namespace maki {

/// Which linear layers of a model are adapted, and how.
struct LowRank {
  std::int64_t rank = 1;
  double scale = 1;  ///< by which the output of an adapter is multiplied: alpha / r in the paper
  /// Whether to adapt the layer with this weight. Called once for every linear layer between hidden layers, when it is
  /// created, with the whole name of its weight, such as "h.0.attn.c_attn.weight". Must not be empty.
  std::function<bool(const std::string& weight)> wanted;
};

/// scale · B A x: [… in] → [… out], with A = lora_a [r, in] and B = lora_b [out, r]. A is initially drawn from
/// N(0, 1/in), so that A x is as large as the elements of x, and B is 0, so that a new adapter changes nothing.
struct LowRankAdapter {
  /// `matrices` is that of the adapted Linear. An adapter is too narrow to count as arithmetic
  /// (Parameter::multiplied()).
  LowRankAdapter(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t matrices, const LowRank& options);
  Tensor operator()(const Tensor& x) const;

  Parameter &a, &b;
  double scale;
};

/// The adapter that the options of the scope want for the linear layer in this scope; nullopt without options, if they
/// do not want one, and for output layers (matrices = 0).
std::optional<LowRankAdapter> adapter_of(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t matrices);

/// Whether a parameter of this name belongs to an adapter.
bool is_adapter(std::string_view name);
/// Copies the values of all parameters of `adapted`, except those of adapters, to the parameters of the same names in
/// `plain`; where an adapter belongs to a weight W, its copy is W + scale · B A, computed in float64 and rounded once.
/// Requires: both stores are sealed and of one type, and parameters of one name have one shape. Throws Error if `plain`
/// lacks a parameter; those before it have then been copied.
void merge_adapters(const ParameterStore& adapted, double scale, ParameterStore& plain);

}  // namespace maki
