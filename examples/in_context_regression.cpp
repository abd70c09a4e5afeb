// Attention learns while it reads. Linear attention (Katharopoulos et al. 2020, arXiv:2006.16236), here without feature
// map, keeps a state S ← S + v kᵀ and answers a query with S q = Σ v_i (k_i · q). Beside it, gradient descent with rate
// 1 fits S k ≈ v to the same pairs. The gradient of ½ Σ ‖S k_i − v_i‖² is Σ (S k_i − v_i) k_iᵀ, therefore
//   1. one step from S = 0 on all pairs is Σ v_i k_iᵀ, linear attention (von Oswald et al. 2022, arXiv:2212.07677);
//   2. one step per pair is S ← S + (v − S k) kᵀ, the delta rule (Widrow and Hoff 1960; Schlag, Irie and Schmidhuber
//      2021, arXiv:2102.11174). With orthonormal keys, S k = 0 for every new key: it is linear attention again.
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/ops.h>
#include <maki/autograd/tape.h>
#include <numbers>

using namespace maki;

namespace {

constexpr int kPairs = 8;  // keys [kPairs, kPairs], values [kPairs, 2], S [2, kPairs]; linear(k, S) is S k

Tensor normals(const Shape& shape, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::sample);
  Tensor x = empty(shape, DType::float64);
  for (std::uint64_t i = 0; double& value : x.values<double>()) value = stream.normal(i++);
  return x;
}

Tensor gradient_step(const Tensor& state, const Tensor& keys, const Tensor& values) {
  Tape tape;
  Tensor s;
  const Tensor loss = [&] {
    const Recording on(tape);
    s = tape.watch(state);
    return 0.5 * mse(linear(keys, s), values, {.sum = true});
  }();
  tape.backward(loss);
  return state - tape.gradient(s);
}

double distance(const Tensor& a, const Tensor& b) { return std::sqrt(mse(a, b, {.sum = true}).item()); }
bool equal(const Tensor& a, const Tensor& b) { return distance(a, b) < 1e-12; }  // to round-off; NaN is not

// Whether the delta rule is gradient descent, and linear attention is so too if and only if the keys are orthonormal.
bool read_one_by_one(const Tensor& keys, const Tensor& hidden, bool orthonormal) {
  fmt::print("\none by one, {} keys: distance to the hidden matrix\n", orthonormal ? "orthonormal" : "random");
  fmt::print("pair   linear attention   delta rule   gradient descent\n");
  Tensor attention = zeros(hidden.shape(), DType::float64), delta = attention, descent = attention;
  bool holds = true;
  for (int i = 0; i < kPairs; ++i) {
    const Tensor k = slice(keys, 0, i, i + 1), v = linear(k, hidden);
    attention = attention + matmul(v, k, /*transpose_a=*/true);  // v kᵀ, because v and k are rows here
    delta = delta + matmul(v - linear(k, delta), k, /*transpose_a=*/true);
    descent = gradient_step(descent, k, v);
    fmt::print("{:4} {:18.6f} {:12.6f}", i + 1, distance(attention, hidden), distance(delta, hidden));
    fmt::print(" {:18.6f}\n", distance(descent, hidden));
    const bool same = orthonormal || i == 0;
    holds = holds && equal(delta, descent) && (same ? equal(attention, descent) : distance(attention, descent) > 0.01);
  }
  return holds;
}

}  // namespace

int main() {
  const Tensor hidden = normals({2, kPairs}, 1), queries = normals({4, kPairs}, 2), some = normals({kPairs, kPairs}, 3);
  const Tensor keys = some / sqrt(sum(some * some, {1}, /*keep_axes=*/true)), values = linear(keys, hidden);
  const Tensor attention = matmul(matmul(queries, keys, false, /*transpose_b=*/true), values);  // (Q Kᵀ) V
  const Tensor descent = linear(queries, gradient_step(zeros(hidden.shape(), DType::float64), keys, values));
  fmt::print("all pairs at once\nquery  linear attention  one step of gradient descent\n");
  for (int i = 0; i < 4; ++i) fmt::print("{:4} {:18.12f} {:18.12f}\n", i + 1, attention.at(2 * i), descent.at(2 * i));

  Tensor cosines = empty({kPairs, kPairs}, DType::float64);  // DCT-IV: orthonormal rows
  for (int i = 0; i < kPairs * kPairs; ++i) {
    const double angle = std::numbers::pi / kPairs * (i / kPairs + 0.5) * (i % kPairs + 0.5);
    cosines.data<double>()[i] = std::sqrt(2.0 / kPairs) * std::cos(angle);
  }
  const bool orthonormal = read_one_by_one(cosines, hidden, true), random = read_one_by_one(keys, hidden, false);
  return equal(attention, descent) && orthonormal && random ? 0 : 1;
}
