// The table that drives the tests of all ops. A row says how to draw a case (shapes and values from a seed) and how to
// call the op, which is also the call of its definition (definitions.h). The drivers (tests/ops/*_test.cpp) do the
// rest: values and gradients against the definition, gradients against four-point differences, float32 against float64,
// NaN and Inf, garbage in the output buffers, thread counts, SIMD targets. A new op needs a row in the file of its
// family: a driver reads autograd/ops.h and fails for an op without one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/core/philox.h"
#include "autograd/tensor.h"
#include "tests/ops/definitions.h"

namespace maki::tests {

using definitions::Exact;
using definitions::kRandom;

/// Seeded random draws for one case. Values are float64; the drivers convert them.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : stream_(seed, RandomPurpose::test), seed_(seed) {}

  std::uint64_t seed() const { return seed_; }
  std::int64_t integer(std::int64_t low, std::int64_t high);  ///< inclusive
  bool coin() { return integer(0, 1) == 1; }
  double uniform(double low, double high);
  double normal();
  /// An extent in [1, max]. In about half of the draws it is 1, a vector width or next to one.
  std::int64_t extent(std::int64_t max = 20);
  /// A shape of `rank` extents, with about `elements` elements at most.
  Shape shape(int rank, std::int64_t elements = 200);
  /// `shape` with some leading axes dropped and some extents set to 1, so that it broadcasts against `shape`.
  Shape broadcastable(const Shape& shape);

  Tensor normals(const Shape& shape, double mean = 0, double std = 1);
  Tensor uniforms(const Shape& shape, double low, double high);
  /// Absolute values in [low, high), random signs: for domains away from 0.
  Tensor away_from_zero(const Shape& shape, double low, double high);
  Tensor integers(const Shape& shape, std::int32_t low, std::int32_t high);  ///< int32, inclusive

 private:
  RandomStream stream_;
  std::uint64_t seed_, calls_ = 0;
};

/// How a case calls its op. A generic lambda calls both the op and its definition; one that takes tensors, only the op.
class Call {
 public:
  template <class Function>
  Call(const Function& call) : op_(call) {  // implicit, so that a lambda is enough
    if constexpr (std::is_invocable_v<Function, const std::vector<Exact>&>) definition_ = call;
  }

  Tensor operator()(const std::vector<Tensor>& inputs) const { return op_(inputs); }
  bool has_definition() const { return definition_ != nullptr; }
  Exact definition(const std::vector<Exact>& inputs) const { return definition_(inputs); }

 private:
  std::function<Tensor(const std::vector<Tensor>&)> op_;
  std::function<Exact(const std::vector<Exact>&)> definition_;
};

/// One case: the inputs (float64, or int32 for ids and masks) and the call, which takes them in the type under test.
struct Case {
  std::vector<Tensor> inputs;
  Call call;
};

/// The name of an op as a function, for calling the op as well as its definition.
#define MAKI_OVERLOADS(op) [](const auto&... arguments) { return op(arguments...); }

struct Row {
  std::string op;    ///< the name in ops.h
  std::string name;  ///< distinguishes the rows of one op, e.g. "left stretched"
  std::function<Case(Draw&)> draw;
  double step = 1e-3;   ///< h of the four-point differences
  double floor = 1e-4;  ///< lower bound of the norm that errors are relative to, for gradients that are exactly 0
  double bound = 1e-9;  ///< on the relative error of a gradient
  double definition_bound = 1e-12;  ///< the same for comparisons with the definition
  bool random = false;              ///< the op draws random numbers, so outside a Recording it has other values
  bool differentiable = true;       ///< false: the output has no gradient, and only the forward pass is tested
  bool propagates = true;  ///< NaN in an input must reach every output that depends on it (false for masked attention)
  /// For the float32 driver that gives inputs a mean of ten standard deviations: that deviation, and the lower bound of
  /// the norms. Small where large arguments saturate an op, because its gradient then is only the rounding of a number
  /// near 1.
  double offset_std = 1, offset_floor = 1e-2;
  /// Cases with a size of 0: shapes must be right, nothing may be read or divided by zero. Empty for ops that have
  /// none.
  std::vector<std::function<Case()>> empties = {};
};

std::vector<Row> elementwise_rows();  // op_table_elementwise.cpp
std::vector<Row> linear_rows();       // op_table_linear.cpp
std::vector<Row> layout_rows();       // op_table_layout.cpp: reductions and layout
std::vector<Row> norm_rows();         // op_table_norm.cpp
std::vector<Row> loss_rows();         // op_table_loss.cpp
std::vector<Row> attention_rows();    // op_table_attention.cpp

/// All of them.
const std::vector<Row>& op_table();

}  // namespace maki::tests
