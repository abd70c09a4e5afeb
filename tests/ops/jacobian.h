// Full Jacobians, entry by entry: by the tape (one backward an output) and by four-point differences (one column an
// input), both through the production code in float64.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/tensor.h"

namespace maki::tests {

/// entry(out, in) = d y[out] / d x[in]
struct Jacobian {
  std::int64_t outputs = 0, inputs = 0;
  std::vector<double> entries;

  double operator()(std::int64_t out, std::int64_t in) const {
    return entries[static_cast<std::size_t>(out * inputs + in)];
  }
  double& operator()(std::int64_t out, std::int64_t in) { return entries[static_cast<std::size_t>(out * inputs + in)]; }
};

using OneInput = std::function<Tensor(const Tensor&)>;

Jacobian tape_jacobian(const Tensor& x, const OneInput& f);
Jacobian difference_jacobian(const Tensor& x, const OneInput& f, double step = 1e-3);

/// Where an entry must be exactly 0; every other is compared.
using Masked = std::function<bool(std::int64_t out, std::int64_t in)>;

/// Requires every entry to differ by less than `bound` (NaN fails), masked ones to be 0. Returns the tape's.
Jacobian require_jacobian(
    const Tensor& x, const OneInput& f, double bound = 1e-9,
    const Masked& masked = [](std::int64_t, std::int64_t) { return false; });

}  // namespace maki::tests
