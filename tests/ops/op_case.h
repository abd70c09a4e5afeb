// Shared by the drivers over the op table: running a case in either type, with or without gradients, and comparing
// results.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/ops/op_table.h"
#include "tests/tensors.h"

namespace maki::tests {

inline constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

inline constexpr std::uint64_t kSeeds = 25;

/// A case whose floating-point inputs have become parameters of a store, in the given type. Inputs for which `wanted`
/// is false, and integers, stay plain tensors.
class BoundCase {
 public:
  BoundCase(
      const Case& source, DType dtype,
      const std::function<bool(std::size_t)>& wanted = [](std::size_t) { return true; });

  ParameterStore& store() { return *store_; }
  std::vector<Tensor>& inputs() { return inputs_; }
  Tensor forward() const { return call_(inputs_); }

 private:
  std::unique_ptr<ParameterStore> store_;
  std::vector<Tensor> inputs_;
  Call call_;
};

/// Standard normal numbers, float64: the factors of the outputs y in Σ cotangent · y, whose gradient is checked.
Tensor cotangent(const Shape& shape);

/// Output and, if it has any, the gradients of all inputs for cotangent(), everything in the bound type.
struct Evaluation {
  Tensor output;
  std::vector<Tensor> gradients;  // one per parameter of the store, in the order of creation
};
Evaluation evaluate(BoundCase& bound);

/// ‖a − b‖ / max(‖a‖, ‖b‖, floor) in long double; NaN if a or b contains NaN. Requires: equal shapes.
double relative_error(const Tensor& a, const Tensor& b, double floor = 1e-300);
/// The largest |x − y| / max(|x|, |y|, floor) of elements x of a and y of b at the same place; NaN if there is one. A
/// norm hides an error in an element that is much smaller than others. The floor is 1e-6 times the largest element of
/// both, and at least 1e-8: an element that is 0 by mathematics, such as the gradient of a query that sees a single
/// key, is a difference of numbers as large as the others, with their rounding errors. Requires: equal shapes.
double worst_element(const Tensor& a, const Tensor& b);
/// The message with which `call` is rejected; "nothing was rejected" if it throws no Error.
std::string refusal(const std::function<void()>& call);
std::string describe(const Row& row, std::uint64_t seed, const Case& drawn);

}  // namespace maki::tests
