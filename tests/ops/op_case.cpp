#include "tests/ops/op_case.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "autograd/core/check.h"
#include "autograd/ops.h"

namespace maki::tests {

BoundCase::BoundCase(const Case& source, DType dtype, const std::function<bool(std::size_t)>& wanted)
    : store_(std::make_unique<ParameterStore>(dtype)), call_(source.call) {
  std::vector<Parameter*> parameters;
  for (std::size_t i = 0; i < source.inputs.size(); ++i) {
    const Tensor& x = source.inputs[i];
    const bool differentiable = x && x.dtype() != DType::int32 && wanted(i);
    parameters.push_back(differentiable ? &store_->add(fmt::format("input {}", i), x.shape(), init::values(x))
                                        : nullptr);
  }
  store_->seal();
  for (std::size_t i = 0; i < source.inputs.size(); ++i) {
    const Tensor& x = source.inputs[i];
    inputs_.push_back(parameters[i] != nullptr          ? parameters[i]->value()
                      : !x || x.dtype() == DType::int32 ? x
                                                        : convert(x, dtype));
  }
}

Tensor cotangent(const Shape& shape) { return random_tensor(shape, 11); }

Evaluation evaluate(BoundCase& bound) {
  Tape tape;
  Evaluation result;
  bound.store().clear_gradients();
  {
    const Recording on(tape, kRandom);
    result.output = bound.forward();
  }
  if (!result.output.requires_grad()) return result;
  tape.backward(result.output, convert(cotangent(result.output.shape()), result.output.dtype()));
  for (const auto& parameter : bound.store().parameters()) {
    result.gradients.push_back(convert(parameter->gradient(), bound.store().dtype()));
  }
  return result;
}

double relative_error(const Tensor& a, const Tensor& b, double floor) {
  check(a.shape() == b.shape(), "relative_error: shapes must be equal; got {} and {}", a.shape(), b.shape());
  long double distance = 0, norm_a = 0, norm_b = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const long double x = a.at(i), y = b.at(i);
    distance += (x - y) * (x - y);
    norm_a += x * x;
    norm_b += y * y;
  }
  if (a.numel() == 0) return 0;
  const long double largest = std::max(std::sqrt(std::max(norm_a, norm_b)), static_cast<long double>(floor));
  return static_cast<double>(std::sqrt(distance) / largest);
}

double worst_element(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "worst_element: shapes must be equal; got {} and {}", a.shape(), b.shape());
  double floor = 1e-8, worst = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    floor = std::max({floor, 1e-6 * std::abs(a.at(i)), 1e-6 * std::abs(b.at(i))});
  }
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.at(i), y = b.at(i);
    worst = max_or_nan(worst, std::abs(x - y) / std::max({std::abs(x), std::abs(y), floor}));
  }
  return worst;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was rejected";
}

std::string describe(const Row& row, std::uint64_t seed, const Case& drawn) {
  std::string text = fmt::format("{} ({}), seed {}, inputs", row.op, row.name, seed);
  for (const Tensor& x : drawn.inputs) text += x ? fmt::format(" {}", x.shape()) : " none";
  return text;
}

}  // namespace maki::tests
