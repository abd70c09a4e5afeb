// exp(q · k) is an inner product φ(q) · φ(k), but of infinitely many features. With M features instead, attention is
// linear in the number of tokens. Two ways to choose them:
//   random   φ(x)_i = exp(w_i · x − |x|²/2) / √M with normal w_i, right in expectation, the error falls as 1/√M
//            (Choromanski et al. 2021, arXiv:2009.14794);
//   Nyström  φ(x) = K^(−1/2) k(x) with k(x)_i = exp(x · l_i − |l_i|²/2), the projection onto M landmarks l_i, here the
//            centres of k-means of the keys (Williams and Seeger 2001). It uses what random features ignore: where the
//            keys are.
// The error is ‖A' − A‖ / ‖A‖ of the matrix of attention weights, over all queries and keys.
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/core/philox.h>
#include <maki/autograd/ops.h>
#include <maki/nn/features.h>

using namespace maki;

namespace {

constexpr std::int64_t kTokens = 256, kSize = 16;
constexpr int kTopics = 8;

// Rows [N, D] around `centres`, as queries and keys of a trained model are: words of a topic point the same way.
Tensor around(const Tensor& centres, double spread, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::sample);
  Tensor x = empty({kTokens, kSize}, DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const std::int64_t topic = i / kSize % kTopics, column = i % kSize;
    x.data<double>()[i] = centres.at(topic * kSize + column) + spread * stream.normal(static_cast<std::uint64_t>(i));
  }
  return x;
}

Tensor weights(const Tensor& q, const Tensor& k) {  // rows that sum to 1
  const Tensor products = linear(q, k);
  return products / sum(products, {-1}, /*keep_axes=*/true);
}

double distance(const Tensor& a, const Tensor& b) { return std::sqrt(mse(a, b).item() / mean(b * b).item()); }

}  // namespace

int main() {
  const Tensor centres = random_projection(RandomStream(1, RandomPurpose::sample), kTopics, kSize, false) * 0.14;
  const Tensor q = around(centres, 0.05, 2), k = around(centres, 0.05, 3), exact = softmax(linear(q, k));
  fmt::print("features   random, error   x sqrt(M)   Nystrom, error\n");
  double first = 0, last = 0;
  bool nystrom_wins = true;
  for (std::int64_t m = 16; m <= 4096; m *= 4) {
    double squares = 0;
    constexpr int kDraws = 20;
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      const RandomStream stream(draw, RandomPurpose::sample, static_cast<std::uint64_t>(m));
      const Tensor w = random_projection(stream, m, kSize, /*orthogonal=*/false);
      squares += std::pow(distance(weights(stable_random_features(q, w), random_features(k, w)), exact), 2) / kDraws;
    }
    const double random = std::sqrt(squares);
    fmt::print("{:8} {:15.4f} {:11.2f}", m, random, random * std::sqrt(static_cast<double>(m)));
    if (m <= 64) {
      const Tensor landmarks = choose_landmarks(k, m), root = nystrom_root(landmarks);
      const double nystrom =
          distance(weights(stable_nystrom_features(q, landmarks, root), nystrom_features(k, landmarks, root)), exact);
      fmt::print(" {:16.4f}", nystrom);
      nystrom_wins = nystrom_wins && nystrom < random;
    }
    fmt::print("\n");
    first = m == 16 ? random : first, last = random;
  }
  const double slope = std::log(last / first) / std::log(4096.0 / 16);
  fmt::print("the error of random features falls as M^{:.2f}\n", slope);
  return nystrom_wins && slope > -0.6 && slope < -0.4 ? 0 : 1;
}
