// What the drivers over the op table share: running a case in a type, with or without gradients, and comparing.
#pragma once

#include <memory>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/ops/op_table.h"

namespace maki::tests {

inline constexpr std::uint64_t kSeeds = 25;

/// A case whose floating inputs are parameters of a store of their own, in the type asked for. Inputs that `wanted`
/// leaves out, and integers, stay plain tensors.
class Bound {
 public:
  Bound(
      const Case& source, DType dtype,
      const std::function<bool(std::size_t)>& wanted = [](std::size_t) { return true; });

  ParameterStore& store() { return *store_; }
  std::vector<Tensor>& inputs() { return inputs_; }
  Tensor forward() const { return call_(inputs_); }

 private:
  std::unique_ptr<ParameterStore> store_;
  std::vector<Tensor> inputs_;
  std::function<Tensor(const std::vector<Tensor>&)> call_;
};

/// Output and the gradients of all inputs for a fixed random cotangent, everything in the bound type.
struct Evaluation {
  Tensor output;
  std::vector<Tensor> gradients;  // one a parameter of the store, in birth order
};
Evaluation evaluate(Bound& bound);

/// ‖a − b‖ / max(‖a‖, ‖b‖, floor) in long double; NaN where either holds one. Shapes must be equal.
double relative_error(const Tensor& a, const Tensor& b, double floor = 1e-300);
bool same_bits(const Tensor& a, const Tensor& b);
std::string describe(const Row& row, std::uint64_t seed, const Case& drawn);

}  // namespace maki::tests
