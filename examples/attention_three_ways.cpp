// Three proposals for attention. Each is a mean of the tokens X, weighted by the softmax SM of inner products:
//   without parameters     SM(X Xᵀ) X
//   with one matrix        SM(X U Uᵀ Xᵀ) X U
//   queries, keys, values  SM(Q Kᵀ) V,  Q = X W_q, K = X W_k, V = X W_v      (Vaswani et al. 2017, arXiv:1706.03762)
// Eight children wear hats of eight colours. Each knows its own name and colour and a friend's name, and asks for the
// friend's colour. In pairs, both know each other: U Uᵀ can express such a symmetric relation. In a ring, each knows
// the next: U Uᵀ cannot tell whom I know from who knows me. X Xᵀ compares names with names and friends with friends.
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <maki/nn/layers.h>
#include <maki/optim/adam.h>

using namespace maki;

namespace {

constexpr std::int64_t kGames = 256, kChildren = 8, kWidth = 3 * kChildren;

// x: own name, friend's name and own colour, one-hot, of the children of all games; y: the colours of their friends.
std::pair<Tensor, Tensor> play(bool ring, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::sample);
  Tensor x = zeros({kGames, kChildren, kWidth}, DType::float32), y = empty({kGames, kChildren}, DType::int32);
  auto [token, answer] = std::pair(x.data<float>(), y.data<std::int32_t>());
  for (std::uint64_t draw = 0; draw < kGames * kChildren;) {
    std::array<std::int32_t, kChildren> colour = {0, 1, 2, 3, 4, 5, 6, 7};
    for (std::size_t i = kChildren; i > 1; --i) std::swap(colour[i - 1], colour[stream.below(draw++, i)]);
    const std::size_t odd = 1 + 2 * stream.below(draw++, kChildren / 2);
    for (std::size_t own = 0; own < kChildren; ++own, token += kWidth) {
      const std::size_t known = ring ? (own + odd) % kChildren : own ^ odd;
      token[own] = token[kChildren + known] = token[2 * kChildren + colour[own]] = 1;
      *answer++ = colour[known];
    }
  }
  return {x, y};
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {  // SM(Q Kᵀ) V, in which no child asks itself
  const Tensor itself = one_hot(tensor<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 7}, {kChildren}), kChildren);
  return matmul(softmax(matmul(q, k, false, /*transpose_b=*/true) - 1e9 * itself), v);
}

double accuracy(int proposal, bool ring) {  // the percentage of right answers in new games, after training
  ParameterStore store;
  const auto matrix = [&](const char* name) {
    return Linear(Scope(store) / name, kWidth, kWidth, false, init::normal(0.05));
  };
  const Linear q = matrix("q"), k = matrix("k"), v = matrix("v"), colour(Scope(store) / "colour", kWidth, kChildren);
  store.seal(/*seed=*/1);
  const auto logits = [&](const Tensor& x) {
    if (proposal == 0) return colour(attend(x, x, x));
    return colour(proposal == 1 ? attend(q(x), q(x), q(x)) : attend(q(x), k(x), v(x)));
  };
  const auto games = play(ring, /*seed=*/1), new_games = play(ring, /*seed=*/2);
  Adam optimizer(store);
  Tape tape;
  for (int step = 0; step < 300; ++step) {
    const Tensor loss = [&] {
      const Recording on(tape);
      return cross_entropy(logits(games.first), games.second);
    }();
    tape.backward(loss);
    optimizer.step(/*learning_rate=*/0.01);
  }
  const Tensor guess = logits(new_games.first);
  const Tensor right = one_hot(argmax(guess), kChildren) * one_hot(new_games.second, kChildren);
  return 100 * kChildren * mean(right).item() + 0 * sum(guess).item();  // NaN if any guess is
}

}  // namespace

int main() {
  const char* const proposals[] = {"SM(X X^T) X", "SM(X U U^T X^T) X U", "SM(Q K^T) V"};
  double pairs[3], ring[3];
  fmt::print("right answers            in pairs    in a ring\n");
  for (int i = 0; i < 3; ++i) {
    pairs[i] = accuracy(i, false), ring[i] = accuracy(i, true);
    fmt::print("{:22} {:8.1f} % {:10.1f} %\n", proposals[i], pairs[i], ring[i]);
  }
  return pairs[0] < 20 && ring[0] < 20 && pairs[1] > 99 && ring[1] < 60 && pairs[2] > 99 && ring[2] > 99 ? 0 : 1;
}
