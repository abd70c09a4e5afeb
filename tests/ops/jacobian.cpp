#include "tests/ops/jacobian.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"

namespace maki::tests {

Jacobian tape_jacobian(const Tensor& x, const OneInput& f) {
  ParameterStore store(DType::float64);
  const Parameter& parameter = store.add("x", x.shape(), init::values(x));
  store.seal();
  Jacobian result;
  Tape tape;
  for (std::int64_t out = 0; out == 0 || out < result.outputs; ++out) {
    store.clear_gradients();
    Tensor y;
    {
      const Recording on(tape);
      y = f(parameter.value());
    }
    if (out == 0) {
      result.outputs = y.numel();
      result.inputs = x.numel();
      result.entries.resize(static_cast<std::size_t>(y.numel() * x.numel()));
    }
    Tensor cotangent = zeros(y.shape(), DType::float64);
    cotangent.data<double>()[out] = 1;
    tape.backward(y, cotangent);
    const Tensor gradient = parameter.gradient();
    std::copy_n(gradient.data<double>(), x.numel(), &result(out, 0));
  }
  return result;
}

Jacobian difference_jacobian(const Tensor& x, const OneInput& f, double step) {
  // The two values at ±h are subtracted first, so that the entry of an output that does not depend on the input is
  // exactly 0.
  Jacobian result;
  result.inputs = x.numel();
  const auto moved = [&](std::int64_t in, double by) {
    Tensor at = convert(x, DType::float64);
    at.data<double>()[in] += by;
    return f(at);
  };
  for (std::int64_t in = 0; in < x.numel(); ++in) {
    for (const int k : {1, 2}) {
      const Tensor up = moved(in, k * step), down = moved(in, -k * step);
      const double weight = (k == 1 ? 8 : -1) / (12 * step);
      result.outputs = up.numel();
      result.entries.resize(static_cast<std::size_t>(up.numel() * x.numel()));
      for (std::int64_t out = 0; out < up.numel(); ++out) result(out, in) += weight * (up.at(out) - down.at(out));
    }
  }
  return result;
}

Jacobian require_jacobian(const Tensor& x, const OneInput& f, double bound, const Masked& masked) {
  const Jacobian by_tape = tape_jacobian(x, f), by_differences = difference_jacobian(x, f);
  REQUIRE(by_tape.entries.size() == by_differences.entries.size());
  REQUIRE(!by_tape.entries.empty());
  for (std::int64_t out = 0; out < by_tape.outputs; ++out) {
    for (std::int64_t in = 0; in < by_tape.inputs; ++in) {
      INFO("output " << out << ", input " << in << ": tape " << by_tape(out, in) << ", differences "
                     << by_differences(out, in));
      if (masked(out, in)) {
        REQUIRE(by_tape(out, in) == 0);
        REQUIRE(by_differences(out, in) == 0);
      } else {
        REQUIRE(std::abs(by_tape(out, in) - by_differences(out, in)) < bound);
      }
    }
  }
  return by_tape;
}

}  // namespace maki::tests
