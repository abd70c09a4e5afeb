// "Transformers are RNNs" (Katharopoulos et al. 2020, arXiv:2006.16236). If attention weights are inner products of
// features, the sum over the past can be kept instead of the past itself:
//   y_t = Σ_{s≤t} (φ(q_t) · φ(k_s)) v_s / Σ_{s≤t} φ(q_t) · φ(k_s) = φ(q_t)ᵀ S_t / φ(q_t)ᵀ z_t,
//   S_t = S_{t−1} + φ(k_t) v_tᵀ,   z_t = z_{t−1} + φ(k_t),   φ(x) = elu(x) + 1.
// The left side is computed for all tokens at once, as in training; the right side token by token, as in generation.
// Softmax attention has no such state: it keeps the keys and values of all tokens.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/core/philox.h>
#include <maki/autograd/ops.h>

using namespace maki;

namespace {

constexpr std::int64_t kTokens = 4096, kHeads = 4, kWidth = 64, kHeadSize = kWidth / kHeads;

Tensor normals(std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::sample);
  Tensor x = empty({1, kTokens, kWidth}, DType::float64);
  for (std::uint64_t i = 0; double& value : x.values<double>()) value = stream.normal(i++);
  return x;
}

double largest_difference(const Tensor& a, const Tensor& b) { return max(reshape(abs(a - b), {a.numel()})).item(); }

}  // namespace

int main() {
  const Tensor q = elu_plus_one(normals(1)), k = elu_plus_one(normals(2)), v = normals(3);
  const LinearAttention options = {.n_head = kHeads};
  const Tensor parallel = linear_attention(q, k, v, options);

  LinearAttentionSums state{zeros({1, kHeads, kHeadSize, kHeadSize}, DType::float64),
                            zeros({1, kHeads, kHeadSize}, DType::float64)};
  double difference = 0;
  fmt::print("tokens   numbers kept: softmax   linear   largest difference from the parallel pass\n");
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const auto token = [&](const Tensor& x) { return slice(x, 1, t, t + 1); };
    const Tensor y = linear_attention(token(q), token(k), token(v), options, state);
    difference = std::max(difference, largest_difference(y, token(parallel)));
    const std::int64_t read = t + 1, kept = state.products.numel() + state.keys.numel();
    if (read == 1 || read == 16 || read == 256 || read == kTokens) {
      fmt::print("{:6} {:23} {:8}   {}\n", read, 2 * read * kWidth, kept,
                 difference < 1e-12 ? "below 1e-12" : "TOO LARGE");
    }
  }
  return difference < 1e-12 ? 0 : 1;
}
