// A small optimizer with other rules and moments for matrices than for vectors, which no library file knows: what
// somebody who adds an optimizer writes.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "optim/adam.h"
#include "optim/parameter_optimizer.h"

namespace maki::tests {

/// Matrices: Lion (Chen et al. 2023, arXiv:2302.06675), and the largest absolute value of m in every row, as a moment
/// that is never negative and has fewer elements than the matrix. Everything else: Adam.
class MatrixAndVectorOptimizer : public ParameterOptimizer {
 public:
  explicit MatrixAndVectorOptimizer(ParameterStore& store) : ParameterOptimizer(store) {}

 private:
  std::vector<MomentSpec> moments_of(const Parameter& parameter) const override {
    const Shape& shape = parameter.shape();
    if (shape.rank() != 2) return {{"exp_avg", shape}, {"exp_avg_sq", shape, false}};
    return {{"exp_avg", shape}, {"row_norm", Shape{shape[0]}, false}};
  }

  void update_parameter(const OptimizerStep& step, ParameterUpdate& p) override {
    if (p.parameter.shape().rank() != 2) {
      update_adam({}, true, p.decay(), step, p.gradient, p.value, p.moment("exp_avg"), p.moment("exp_avg_sq"));
      return;
    }
    dispatch(p.value.dtype(), [&]<class T>() { lion<T>(step, p); });
  }

  // u ← sign(0.9 · m + 0.1 · g);   value ← value · (1 − lr · 0.1) − lr · u;   m ← 0.99 · m + 0.01 · g,
  // with 0 in place of the decay 0.1 unless p.decay(), and g the gradient times step.grad_scale.
  template <class T>
  static void lion(const OptimizerStep& step, ParameterUpdate& p) {
    const std::int64_t columns = p.value.shape()[1];
    const double rate = step.learning_rate, decay = p.decay() ? 0.1 : 0;
    T *const value = p.value.data<T>(), *const m = p.moment("exp_avg").data<T>();
    T* const row_norm = p.moment("row_norm").data<T>();
    const T* const gradient = p.gradient.data<T>();
    std::ranges::fill(p.moment("row_norm").values<T>(), T{0});
    for (std::int64_t i = 0; i < p.value.numel(); ++i) {
      const double g = step.grad_scale * gradient[i], u = 0.9 * m[i] + 0.1 * g;
      const double sign = u > 0 ? 1 : u < 0 ? -1 : 0;
      value[i] = static_cast<T>(value[i] * (1 - rate * decay) - rate * sign);
      m[i] = static_cast<T>(0.99 * m[i] + 0.01 * g);
      row_norm[i / columns] = std::max(row_norm[i / columns], std::abs(m[i]));
    }
  }
};

}  // namespace maki::tests
