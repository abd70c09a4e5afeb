// Learns XOR, the smallest problem that needs a hidden layer (Rumelhart, Hinton and Williams 1986), with tensors, a
// tape and an optimizer.
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <maki/nn/layers.h>
#include <maki/optim/adam.h>

int main() {
  using namespace maki;
  const Tensor x = tensor<float>({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
  const Tensor y = tensor<float>({0, 1, 1, 0}, {4, 1});

  ParameterStore store;
  const Linear hidden(Scope(store) / "hidden", 2, 8);
  const Linear output(Scope(store) / "output", 8, 1);
  store.seal(/*seed=*/1);
  const auto model = [&](const Tensor& inputs) { return sigmoid(output(tanh(hidden(inputs)))); };

  AdamW optimizer(store);
  Tape tape;
  for (int step = 0; step < 500; ++step) {
    const Tensor loss = [&] {
      const Recording on(tape);
      return mse(model(x), y);
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/0.05);
    if (step % 100 == 0) fmt::print("step {:3}  loss {:.4f}\n", step, loss.item());
  }
  const Tensor guess = model(x);
  for (int i = 0; i < 4; ++i) fmt::print("{} xor {} = {:.3f}\n", x.at(2 * i), x.at(2 * i + 1), guess.at(i));
}
