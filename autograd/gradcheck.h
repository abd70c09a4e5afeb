// Gradient checking: the gradients a backward pass delivers against four-point central differences of the forward pass,
//   f'(x) ≈ (f(x − 2h) − 8 f(x − h) + 8 f(x + h) − f(x + 2h)) / 12h,   error O(h⁴),
// in float64, through the production code. Abramowitz and Stegun 1964, table 25.2.
//
// Where a kink (relu) lies between the four points, the difference is that of no derivative. Whether one does is asked
// of differences alone, never of the backward pass: with `halvings` the step is halved until the differences of two
// steps agree, and of all pairs the one that agrees best is believed. A wrong gradient gains nothing by it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tape.h"

namespace maki {

struct GradcheckOptions {
  double step = 1e-3;           ///< h, relative to max(1, |x|)
  double floor = 0;             ///< of the norm an error is measured against, absolute
  double relative_floor = 0;    ///< the same as a fraction of the largest gradient norm of all parameters
  std::int64_t directions = 0;  ///< 0: every entry. Otherwise this many random directions and the largest entries:
  std::int64_t entries = 0;     ///< so many of them
  int halvings = 0;             ///< of the step at most, where there may be kinks; 0: the step as it is
  std::uint64_t seed = 0;       ///< of the cotangent and the directions
  RandomContext random = {};    ///< of every recording, so that dropout repeats
};

/// What was found for one parameter: a and n are the compared derivatives, by the tape and by differences.
struct GradcheckResult {
  std::string name;
  Shape shape;
  std::int64_t compared = 0, halved = 0;  ///< derivatives, and how many of them needed a smaller step
  double analytic_norm = 0, numeric_norm = 0;
  double error = 0;   ///< ‖a − n‖ / max(‖a‖, ‖n‖, floor); NaN where one of them is
  std::string worst;  ///< the entry or direction that differs most
  double worst_analytic = 0, worst_numeric = 0;

  /// NaN fails, and so does a check that compared nothing.
  bool passed(double bound) const { return compared > 0 && error <= bound; }
};

/// Checks every trainable parameter of the store. `forward` computes any one tensor from them and is called many times,
/// recorded each time, on a tape that is dropped; its output is contracted with a random cotangent (all ones would
/// cancel through a softmax). Throws unless everything is float64. Values are restored, gradients cleared.
std::vector<GradcheckResult> gradcheck(ParameterStore& store, const std::function<Tensor()>& forward,
                                       const GradcheckOptions& options = {});

}  // namespace maki
