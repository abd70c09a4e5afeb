// Attention is a kernel method. For a kernel K(x, y) > 0, Nadaraya and Watson (1964) estimate a function from noisy
// samples (x_i, y_i) by the mean of the y_i, weighted by how near their x_i are:
//   f(x) = Σ_i K(x, x_i) y_i / Σ_i K(x, x_i).
// With K(q, k) = exp(q · k) this is attention to keys x_i with values y_i. For keys of equal length it is the Gaussian
// kernel, because exp(q · k) = exp(−|q − k|² / 2) · exp(|q|² / 2) · exp(|k|² / 2): the second factor is the same in
// numerator and denominator, the third is a constant. Here the x_i lie on a circle, and one number is left to choose:
// how long queries and keys are, which is how narrow the kernel is.
#include <cmath>
#include <fmt/core.h>
#include <maki/autograd/core/philox.h>
#include <maki/autograd/ops.h>
#include <numbers>

using namespace maki;

namespace {

constexpr std::int64_t kSamples = 400, kQueries = 60;

double truth(double angle) { return std::sin(2 * angle) + 0.5 * std::cos(5 * angle); }

Tensor on_circle(std::int64_t n) {
  Tensor x = empty({n, 2}, DType::float64);
  for (std::int64_t i = 0; i < n; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    x.data<double>()[2 * i] = std::cos(angle), x.data<double>()[2 * i + 1] = std::sin(angle);
  }
  return x;
}

// Σ K(x, x_i) y_i / Σ K(x, x_i) with the Gaussian kernel, as in a textbook of statistics.
double nadaraya_watson(const Tensor& x, std::int64_t query, const Tensor& keys, const Tensor& y) {
  double above = 0, below = 0;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const double dx = x.at(2 * query) - keys.at(2 * i), dy = x.at(2 * query + 1) - keys.at(2 * i + 1);
    const double weight = std::exp(-(dx * dx + dy * dy) / 2);
    above += weight * y.at(2 * i), below += weight;
  }
  return above / below;
}

}  // namespace

int main() {
  const RandomStream stream(/*seed=*/1, RandomPurpose::sample);
  Tensor values = zeros({kSamples, 2}, DType::float64);  // noisy samples; the second column is not used
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / kSamples;
    values.data<double>()[2 * i] = truth(angle) + 0.5 * stream.normal(2 * static_cast<std::uint64_t>(i));
  }
  fmt::print("length of q and k   error of the estimate   attention - Nadaraya-Watson\n");
  double best = INFINITY, wide = 0, narrow = 0;
  bool same = true;
  for (const double length : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) {
    const Tensor keys = on_circle(kSamples) * length, queries = on_circle(kQueries) * length;
    const Tensor kv = reshape(concat({keys, values}, 1), {1, kSamples, 4});
    const Tensor y = attention(reshape(queries, {1, kQueries, 2}), kv, {.n_head = 1, .scale = 1});
    double squares = 0, difference = 0;
    for (std::int64_t i = 0; i < kQueries; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / kQueries;
      squares += std::pow(y.at(2 * i) - truth(angle), 2);
      difference = std::max(difference, std::abs(y.at(2 * i) - nadaraya_watson(queries, i, keys, values)));
    }
    const double error = std::sqrt(squares / kQueries);
    fmt::print("{:17.0f} {:23.3f}   {:>27}\n", length, error, difference < 1e-11 ? "0 to round-off" : "DIFFERENT");
    same = same && difference < 1e-11;
    best = std::min(best, error), narrow = error, wide = length == 1 ? error : wide;
  }
  return same && best < wide / 3 && best < narrow / 2 ? 0 : 1;
}
