// Softmax regression (Bishop 2006, "Pattern Recognition and Machine Learning", section 4.3.4): p = softmax(W x + b),
// the last layer of every language model. First its Jacobian, ∂p/∂z = diag(p) − p pᵀ, is printed beside the one that
// the tape computes. Then it learns by gradient descent to tell three clouds of points apart.
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <maki/nn/layers.h>
#include <maki/optim/sgd.h>
#include <numbers>

using namespace maki;

namespace {

// A backward pass multiplies the Jacobian by a row vector from the left; the unit vector e_i selects row i.
Tensor jacobian_row(const Tensor& z, std::int32_t i) {
  Tape tape;
  Tensor watched;
  const Tensor p = [&] {
    const Recording on(tape);
    watched = tape.watch(z);
    return softmax(watched);
  }();
  tape.backward(p, one_hot(tensor<std::int32_t>({i}, {1}), p.numel(), z.dtype()));
  return tape.gradient(watched);
}

// Prints both Jacobians. Whether they agree to round-off; NaN does not.
bool print_jacobians(const Tensor& z) {
  const Tensor p = softmax(z);
  fmt::print("p = softmax(z) = ({:.4f}, {:.4f}, {:.4f})\n\n", p.at(0), p.at(1), p.at(2));
  fmt::print("diag(p) - p p^T                 from the tape\n");
  bool agree = true;
  for (std::int32_t i = 0; i < 3; ++i) {
    const auto formula = [&](int j) { return (i == j ? p.at(i) : 0) - p.at(i) * p.at(j); };
    const Tensor row = jacobian_row(z, i);
    fmt::print("{:8.4f} {:8.4f} {:8.4f}      ", formula(0), formula(1), formula(2));
    fmt::print("{:8.4f} {:8.4f} {:8.4f}\n", row.at(0), row.at(1), row.at(2));
    for (int j = 0; j < 3; ++j) agree = agree && std::abs(row.at(j) - formula(j)) < 1e-15;
  }
  fmt::print("the Jacobians {} to round-off\n\n", agree ? "agree" : "DO NOT AGREE");
  return agree;
}

}  // namespace

int main() {
  const bool agree = print_jacobians(tensor<double>({1, 2, -0.5}, {3}));

  constexpr std::int64_t kPoints = 300;  // around the corners of a triangle; point i belongs to corner i mod 3
  const RandomStream stream(/*seed=*/1, RandomPurpose::sample);
  Tensor x = empty({kPoints, 2}, DType::float64), corner = empty({kPoints}, DType::int32);
  for (std::uint64_t i = 0; i < kPoints; ++i) {
    const double angle = 2 * std::numbers::pi / 3 * static_cast<double>(i % 3);
    x.data<double>()[2 * i] = std::cos(angle) + 0.3 * stream.normal(2 * i);
    x.data<double>()[2 * i + 1] = std::sin(angle) + 0.3 * stream.normal(2 * i + 1);
    corner.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 3);
  }
  ParameterStore store(DType::float64);
  const Linear logits(Scope(store) / "logits", 2, 3);  // W x + b
  store.seal(/*seed=*/1);
  Sgd optimizer(store);
  Tape tape;
  for (int step = 0; step <= 100; ++step) {
    const Tensor loss = [&] {
      const Recording on(tape);
      return cross_entropy(logits(x), corner);  // the mean of −log p[corner]
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/1);
    if (step % 25 == 0) fmt::print("step {:3}  loss {:.4f}\n", step, loss.item());
  }
  const Tensor guess = argmax(logits(x));
  int right = 0;
  for (std::int64_t i = 0; i < kPoints; ++i) right += guess.at(i) == corner.at(i) ? 1 : 0;
  fmt::print("{} of {} points are classified correctly\n", right, kPoints);
  return agree && right > 0.95 * kPoints ? 0 : 1;
}
