// Gradient checking: compares the gradients of a backward pass with four-point central differences of the forward pass,
//   f'(x) ≈ (f(x − 2h) − 8 f(x − h) + 8 f(x + h) − f(x + 2h)) / 12h,   error O(h⁴),
// in float64, through the production code. Abramowitz and Stegun 1964, table 25.2.
//
// If a kink (relu) lies between the four points, the difference quotient approximates no derivative. With `halvings`,
// the step is halved until the quotients of two successive steps agree to 1e-8 of their size or within the rounding
// error of the forward pass. Of the pair that agrees best, rounding error included, the quotient of the smaller step is
// used. Only difference quotients enter this decision, never the backward pass, so it cannot make a wrong gradient
// pass.
//
// A derivative takes four forward passes, and two more for each halving.
//
// Thread safety: none for the store that is checked, whose values change during the check; different stores may be
// checked on several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tape.h"

namespace maki {

struct GradcheckOptions {
  /// h; multiplied by max(1, |x|) where a single entry x is varied, but not along a direction. Half the step makes the
  /// error O(h⁴) 16 times smaller and the rounding error of the differences twice as large. Must be above 0, unchecked.
  double step = 1e-3;
  double floor = 0;           ///< lower bound of the norm by which an error is divided
  double relative_floor = 0;  ///< the same as a fraction of the largest gradient norm of all parameters
  /// 0: every entry of every parameter is compared. Otherwise, for each parameter, this many random directions of
  /// length 1 and the `entries` entries whose gradients are largest in magnitude, or all if there are fewer.
  std::int64_t directions = 0;
  std::int64_t entries = 0;   ///< used only if directions > 0
  int halvings = 0;           ///< the step is halved at most this many times, for functions with kinks; 0: never
  std::uint64_t seed = 0;     ///< for the cotangent and the directions
  RandomContext random = {};  ///< used for every recording, so that dropout draws the same mask each time
};

/// The comparison for one parameter. `a` stands for the derivatives computed by the tape, `n` for the numerical ones.
struct GradcheckResult {
  std::string name;
  Shape shape;
  std::int64_t compared = 0;  ///< number of derivatives
  std::int64_t halved = 0;    ///< how many of them needed more than the one halving that compares two steps
  double analytic_norm = 0, numeric_norm = 0;  ///< ‖a‖ and ‖n‖, of the derivatives that were compared
  double error = 0;  ///< ‖a − n‖ / max(‖a‖, ‖n‖, floor); NaN if any of them is NaN or if 0 is divided by 0
  std::string worst;  ///< the entry or direction with the largest difference
  double worst_analytic = 0, worst_numeric = 0;

  /// A NaN error fails, and so does a check that compared nothing.
  bool passed(double bound) const { return compared > 0 && error <= bound; }
};

/// Checks every trainable parameter of the store; one result per parameter, in the order of
/// ParameterStore::parameters(). `forward` computes one tensor of any shape from the parameters. It is called many
/// times, each time inside a Recording, and must be deterministic. Its output is contracted with a random cotangent
/// (one of all ones would cancel in a softmax). Restores all values, clears all gradients and raises the store's
/// version, also if it throws: Error unless the parameters and the output are float64 and the output was computed from
/// at least one trainable parameter, and whatever `forward` throws.
///
/// Requires: the store is sealed.
std::vector<GradcheckResult> gradcheck(ParameterStore& store, const std::function<Tensor()>& forward,
                                       const GradcheckOptions& options = {});

}  // namespace maki
