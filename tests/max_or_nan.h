// The largest of some errors.
#pragma once

#include <cmath>

namespace maki::tests {

/// The larger number; NaN if one of them is, unlike with std::max(), so that a NaN among errors is not overlooked.
template <class T>
T max_or_nan(T a, T b) {
  return std::isnan(a) || a > b ? a : b;
}

}  // namespace maki::tests
