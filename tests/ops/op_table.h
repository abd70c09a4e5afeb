// The table that drives every test of an op. A row says how to draw a case (shapes and values from a seed) and how to
// call the op; the drivers (tests/ops/*_test.cpp) do the rest: gradients against four-point differences, float32
// against float64, NaN and Inf, garbage in the output buffers, thread counts, SIMD targets. Adding an op means adding
// its row to the file of its family; a driver reads autograd/ops.h and fails for an op without one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/core/philox.h"
#include "autograd/tensor.h"

namespace maki::tests {

/// Seeded draws for one case. Values are float64; drivers convert.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : stream_(seed, Purpose::test), seed_(seed) {}

  std::uint64_t seed() const { return seed_; }
  std::int64_t integer(std::int64_t low, std::int64_t high);  ///< inclusive
  bool coin() { return integer(0, 1) == 1; }
  double uniform(double low, double high);
  double normal();
  /// An extent of 1 … most that likes 1, vector widths and their neighbours.
  std::int64_t extent(std::int64_t most = 20);
  /// A shape of `rank` extents, at most about `elements` elements together.
  Shape shape(int rank, std::int64_t elements = 200);
  /// `shape` with some leading axes dropped and some extents set to 1: broadcasts against it.
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

/// One case: inputs (float64, or int32 for ids and masks) and the call. `call` takes the inputs in the type under test.
struct Case {
  std::vector<Tensor> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> call;
};

struct Row {
  std::string op;    ///< the name in ops.h
  std::string name;  ///< what tells rows of one op apart, e.g. "add, broadcast"
  std::function<Case(Draw&)> draw;
  double step = 1e-3;   ///< h of the four-point differences
  double floor = 1e-4;  ///< of max(‖a‖, ‖n‖): what a gradient that is zero by mathematics is measured against
  double bound = 1e-9;
  bool propagates = true;  ///< NaN in an input must reach every output that depends on it (not so for masked attention)
  /// Where the float32 driver gives inputs a mean of ten std: that std, and the floor of the norms there. Small where
  /// large arguments saturate an op: what is left of its gradient is then the rounding of a number near 1.
  double offset_std = 1, offset_floor = 1e-2;
  /// Cases with a size of 0: right shapes, nothing read, no integer division by zero. May stay empty for ops without.
  std::vector<std::function<Case()>> empties = {};
  /// Input and expected output pairs are for the families' own tests, not for the table.
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
