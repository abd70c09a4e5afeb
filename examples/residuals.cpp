// Why deep networks need residual connections: 64 layers of one unit each, with weight 0.5.
//   plain     h_l = tanh(0.5 h_{l−1})             ∂h_64/∂h_l = Π_{k>l} 0.5 (1 − tanh²(0.5 h_{k−1}))
//   residual  h_l = h_{l−1} + tanh(0.5 h_{l−1})   ∂h_64/∂h_l = Π_{k>l} [1 + 0.5 (1 − tanh²(0.5 h_{k−1}))]
// The first product vanishes like 0.5^(64−l), so the first layers learn nothing (Hochreiter 1991; Bengio, Simard and
// Frasconi 1994). In the second, the 1 carries the gradient past every layer (He et al. 2015, arXiv:1512.03385).
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <string>
#include <vector>

using namespace maki;

namespace {

constexpr std::size_t kLayers = 64;
constexpr double kWeight = 0.5;

// ∂h_64/∂h_l for l = 0, which is the input, to 64: from the tape, and from the formula above.
struct Gradients {
  std::vector<double> tape, formula;
};

Gradients gradients(bool residual) {
  Tape tape;
  std::vector<Tensor> h;
  {
    const Recording on(tape);
    h.push_back(tape.watch(full({1}, DType::float64, 1)));
    while (h.size() <= kLayers) {
      const Tensor branch = tanh(kWeight * h.back());
      h.push_back(tape.watch(residual ? h.back() + branch : branch));
    }
  }
  tape.backward(h.back());
  Gradients of{std::vector<double>(kLayers + 1), std::vector<double>(kLayers + 1, 1)};
  for (std::size_t l = 0; l <= kLayers; ++l) of.tape[l] = tape.gradient(h[l]).item();
  for (std::size_t l = kLayers; l-- > 0;) {
    const double branch = std::tanh(kWeight * h[l].item());
    of.formula[l] = of.formula[l + 1] * ((residual ? 1 : 0) + kWeight * (1 - branch * branch));
  }
  return of;
}

}  // namespace

int main() {
  const Gradients plain = gradients(/*residual=*/false), residual = gradients(/*residual=*/true);
  fmt::print("gradient of the output with respect to each layer; # is a factor of 10\n\n");
  fmt::print("layer  residual   plain\n");
  bool agree = true;  // of the tape and the formula, in every layer; NaN does not agree
  for (std::size_t l = kLayers; l > 0; --l) {
    const double lost = -std::log10(plain.formula[l]);
    fmt::print("{:5}  {:8.2f}   {:.2e}  {}\n", l, residual.tape[l], plain.tape[l],
               std::string(static_cast<std::size_t>(std::max(0.0, 20 - lost)), '#'));
    for (const Gradients& of : {plain, residual}) {
      agree = agree && std::abs(of.tape[l] - of.formula[l]) <= 1e-12 * of.formula[l];
    }
  }
  const double first = plain.tape[1] / std::pow(kWeight, kLayers - 1);
  fmt::print("\nat the first layer: {:.2f} x 0.5^63 without residual connections, {:.2f} with them\n", first,
             residual.tape[1]);
  const bool vanishes = first > 0.9 && first <= 1, survives = residual.tape[1] >= 1 && residual.tape[1] < 10;
  fmt::print("tape and formula {}\n", agree ? "agree in every layer" : "DO NOT AGREE");
  return agree && vanishes && survives ? 0 : 1;
}
