// A classifier of points in the plane: two spirals around each other, which no straight line separates (Lang and
// Witbrock 1988). A multilayer perceptron learns from half of the points; its accuracy is measured on the other half.
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <maki/nn/layers.h>
#include <maki/optim/adam.h>
#include <maki/optim/lr_schedule.h>
#include <numbers>

using namespace maki;

namespace {

struct Points {
  Tensor at;     // [N, 2]
  Tensor label;  // [N] int32: which spiral
};

// n points; equal seeds give equal points.
Points make_spirals(std::int64_t n, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::sample);
  Points points{empty({n, 2}, DType::float32), empty({n}, DType::int32)};
  for (std::int64_t i = 0; i < n; ++i) {
    const auto draw = [&](int k) { return static_cast<std::uint64_t>(8 * i + k); };
    const std::int32_t label = static_cast<std::int32_t>(i % 2);
    const double along = stream.uniform(draw(0)), radius = 0.1 + 0.9 * along;
    const double angle = std::numbers::pi * (3 * along + label);
    points.at.data<float>()[2 * i] = static_cast<float>(radius * std::cos(angle) + 0.02 * stream.normal(draw(2)));
    points.at.data<float>()[2 * i + 1] = static_cast<float>(radius * std::sin(angle) + 0.02 * stream.normal(draw(4)));
    points.label.data<std::int32_t>()[i] = label;
  }
  return points;
}

struct Perceptron {
  explicit Perceptron(const Scope& scope)
      : hidden_1(scope / "hidden_1", 2, 64), hidden_2(scope / "hidden_2", 64, 64), output(scope / "output", 64, 2) {}
  // [N, 2] → [N, 2]: one logit per class
  Tensor operator()(const Tensor& x) const { return output(relu(hidden_2(relu(hidden_1(x))))); }

  Linear hidden_1, hidden_2, output;
};

// The share of points whose largest logit is that of their spiral.
double accuracy(const Perceptron& model, const Points& points) {
  const Tensor guess = argmax(model(points.at));
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < guess.numel(); ++i) right += guess.at(i) == points.label.at(i) ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(guess.numel());
}

}  // namespace

int main() {
  const Points training = make_spirals(400, /*seed=*/1), held_out = make_spirals(400, /*seed=*/2);
  ParameterStore store;
  const Perceptron model{Scope(store)};
  store.seal(/*seed=*/1);

  constexpr int kSteps = 600;
  const LrSchedule schedule{.learning_rate = 0.01, .warmup_steps = 20, .decay_steps = kSteps};
  AdamW optimizer(store, {});
  Tape tape;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor loss = [&] {
      const Recording on(tape);
      return cross_entropy(model(training.at), training.label);
    }();
    tape.backward(loss);
    optimizer.step(schedule(step));
    if (step % 100 == 0) fmt::print("step {:3}  loss {:.4f}\n", step, loss.item());
  }
  fmt::print("accuracy {:.1f} % on the training points, {:.1f} % on points that the model has not seen\n",
             100 * accuracy(model, training), 100 * accuracy(model, held_out));
}
