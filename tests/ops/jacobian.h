// Full Jacobians, entry by entry: by the tape (one backward pass per output) and by four-point differences (one column
// per input), both through the production code in float64.
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

/// Whether an entry must be exactly 0. All others are compared.
using Masked = std::function<bool(std::int64_t out, std::int64_t in)>;

/// Requires that the two Jacobians differ by less than `bound` in every entry (NaN fails), and that masked entries are
/// 0 in both. Returns the tape's Jacobian.
Jacobian require_jacobian(
    const Tensor& x, const OneInput& f, double bound = 1e-9,
    const Masked& masked = [](std::int64_t, std::int64_t) { return false; });

}  // namespace maki::tests
