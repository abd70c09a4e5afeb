#include <fmt/core.h>
#include <maki/autograd/tape.h>
#include <maki/nn/models/gpt.h>
#include <maki/optim/adam.h>

int main() {
  using namespace maki;
  ParameterStore store;
  const Gpt model(Scope(store),
                  TransformerConfig{.n_layer = 1, .n_head = 2, .n_embd = 16, .block_size = 8, .vocab_size = 5});
  store.seal(1);
  AdamW optimizer(store);
  Tape tape;
  const Tensor ids = tensor<std::int32_t>({0, 1, 2, 3, 4, 0, 1, 2}, {1, 8});
  const Tensor targets = tensor<std::int32_t>({1, 2, 3, 4, 0, 1, 2, 3}, {1, 8});
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    const Tensor loss = [&] {
      const Recording on(tape);
      return model.loss(ids, targets);
    }();
    tape.backward(loss);
    optimizer.step(0.01);
    (step == 0 ? first : last) = loss.item();
  }
  fmt::print("{} from {:.3f} to {:.3f}\n", last < first ? "loss fell" : "loss did not fall", first, last);
}
