// The neural tangent kernel (Jacot, Gabriel and Hongler 2018, arXiv:1806.07572). The weights of a wide network hardly
// move while it learns, so the network is almost linear in them. Gradient descent with rate η on ½ Σ (f(X) − y)² then
// needs no network, only the kernel Θ(x, x') = ∇f(x) · ∇f(x') of its initial gradients with respect to the weights:
//   f(x) ← f(x) − η Θ(x, X) (f(X) − y).
// This prediction is compared with the trained network, at points that it learned and at points that it did not see.
// The error falls at least like 1/√width (Lee et al. 2019, arXiv:1902.06720).
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <maki/optim/sgd.h>

using namespace maki;

namespace {

constexpr std::int64_t kPoints = 12, kLearned = 8;  // the first 8 of the 12 points
constexpr double kRate = 0.1;

void backward(const auto& compute) {
  Tape tape;
  const Tensor y = [&] {
    const Recording on(tape);
    return compute();
  }();
  tape.backward(y);
}

// ‖prediction − network‖ / ‖change of the network‖ over all points, after training
double prediction_error(std::int64_t width, std::uint64_t seed, bool print) {
  ParameterStore store(DType::float64);
  const Parameter &w = store.add("w", {width, 1}, init::normal(1)), &b = store.add("b", {width}, init::normal(1));
  const Parameter& a = store.add("a", {1, width}, init::normal(1));
  store.seal(seed);
  const auto f = [&](const Tensor& x) {  // a · tanh(w x + b) / √width: [N, 1] → [N, 1]
    return linear(tanh(linear(x, w, b)), a) / std::sqrt(static_cast<double>(width));
  };
  const Tensor x = tensor<double>({-2, -1.4, -0.9, -0.3, 0.4, 0.8, 1.3, 2, -1.7, -0.6, 0.1, 1.7}, {kPoints, 1});
  const auto learned = [](const Tensor& all) { return slice(all, 0, 0, kLearned); };
  const Tensor y = learned(tanh(2 * x) - 0.5 * x), before = f(x);

  std::vector<Tensor> gradients;  // ∇f(x) for each point x, all weights in one row
  for (std::int64_t i = 0; i < kPoints; ++i) {
    backward([&] { return f(slice(x, 0, i, i + 1)); });
    gradients.push_back(store.take_gradients());
  }
  const Tensor jacobian = stack(gradients), kernel = linear(jacobian, learned(jacobian));  // Θ(x, X) = J(x) J(X)ᵀ
  Tensor predicted = before;
  Sgd optimizer(store);
  for (int step = 0; step < 100; ++step) {
    predicted = predicted - kRate * matmul(kernel, learned(predicted) - y);
    backward([&] { return 0.5 * mse(f(learned(x)), y, {.sum = true}); });
    optimizer.step(kRate);
  }
  const Tensor after = f(x);
  for (std::int64_t i = 0; i < kPoints && print; ++i) {
    fmt::print("{:5.1f}  {:8} {:7.3f} {:9.3f} {:9.3f}\n", x.at(i), i < kLearned ? "learned" : "not seen", before.at(i),
               after.at(i), predicted.at(i));
  }
  return std::sqrt(mse(predicted, after).item() / mse(after, before).item());
}

}  // namespace

int main() {
  fmt::print("    x              before      after training\n                  training   network   kernel\n");
  prediction_error(/*width=*/1024, /*seed=*/0, /*print=*/true);
  fmt::print("\nwidth   error of the kernel's prediction, relative to the change (mean of 8 networks)\n");
  double last = INFINITY;
  for (const std::int64_t width : {16, 256, 4096}) {
    double error = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) error += prediction_error(width, seed, false) / 8;
    fmt::print("{:5}   {:.5f}\n", width, error);
    if (!(error < last / 4)) return 1;  // 16 times the width, at most 1/√16 of the error
    last = error;
  }
  return last < 0.005 ? 0 : 1;
}
