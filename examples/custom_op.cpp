// An op that maki does not have, written outside of the library: softplus(x) = log(1 + e^x), whose derivative is the
// sigmoid. It is defined like every op of maki: compute the output, then record() it with a closure that delivers the
// gradients. gradcheck() verifies the gradient before it is used.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/core/check.h>
#include <maki/autograd/gradcheck.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>

using namespace maki;

namespace {

// […] → […]
Tensor softplus(const Tensor& x) {
  Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>() {  // T is float or double
    std::ranges::transform(x.values<T>(), y.data<T>(),
                           [](T v) { return std::max(v, T{0}) + std::log1p(std::exp(-std::abs(v))); });
  });
  // What the closure captures is saved for backward, here the input. detach(): the copy needs no gradient.
  return record("softplus", y, {x}, [x = x.detach()](Grads& grads) {
    dispatch(x.dtype(), [&]<class T>() {
      const Sink<T> dx = grads.in<T>(0);  // where the gradient of input 0 goes; null if it is not wanted
      if (!dx) return;
      const T* const dy = grads.out<T>();
      const auto values = x.values<T>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        dx.put(static_cast<std::int64_t>(i), dy[i] / (1 + std::exp(-values[i])));  // the sink decides: write or add
      }
    });
  });
}

// The largest relative error of the gradients of mean(softplus(x · weight) · scale), compared with differences.
double gradient_error() {
  ParameterStore store(DType::float64);
  const Parameter& x = store.add("x", {4, 3}, init::normal(2));
  const Parameter& weight = store.add("weight", {3, 5}, init::normal(1));
  const Parameter& scale = store.add("scale", {5}, init::normal(1));
  store.seal(/*seed=*/1);
  double worst = 0;
  for (const GradcheckResult& result : gradcheck(store, [&] { return mean(softplus(matmul(x, weight)) * scale); })) {
    fmt::print("gradient of {:6}  relative error {:.1e}\n", result.name, result.error);
    worst = std::max(worst, result.error);
  }
  return worst;
}

}  // namespace

int main() {
  const bool passed = gradient_error() < 1e-9;
  fmt::print("gradcheck {}\n", passed ? "passed" : "failed");

  // The gradient of any tensor can be read, not only those of parameters.
  Tape tape;
  Tensor x;
  const Tensor y = [&] {
    const Recording on(tape);
    x = tape.watch(tensor<float>({-2, 0, 2}, {3}));
    return sum(softplus(x));
  }();
  tape.backward(y);
  const Tensor dx = tape.gradient(x);
  fmt::print("softplus'(-2, 0, 2) = {:.3f}, {:.3f}, {:.3f}\n", dx.at(0), dx.at(1), dx.at(2));
  return passed ? 0 : 1;
}
