// The linear algebra of Nyström features: landmarks, and the inverse square root of their kernel matrix.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "autograd/core/check.h"
#include "nn/features.h"

namespace maki {
namespace {

double squared_distance(const double* a, const double* b, std::int64_t d) {
  double sum = 0;
  for (std::int64_t c = 0; c < d; ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return sum;
}

// A rotation by an angle that makes element (p, q) of the symmetric matrix a [n, n] zero, applied to a on both sides
// and to v on the right. Golub and Van Loan, section 8.5.
void rotate(double* a, double* v, std::int64_t n, std::int64_t p, std::int64_t q) {
  const double apq = a[p * n + q];
  if (apq == 0) return;
  const double tau = (a[q * n + q] - a[p * n + p]) / (2 * apq);
  const double t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau));
  const double c = 1 / std::sqrt(1 + t * t), s = t * c;
  const auto turn = [c, s](double& x, double& y) {
    const double old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  };
  for (std::int64_t i = 0; i < n; ++i) turn(a[i * n + p], a[i * n + q]);
  for (std::int64_t i = 0; i < n; ++i) turn(a[p * n + i], a[q * n + i]);
  for (std::int64_t i = 0; i < n; ++i) turn(v[i * n + p], v[i * n + q]);
}

// Makes a diagonal by rotations, whose product is v, the identity before: the old a is v · a · vᵀ. It is diagonal when
// the squares of the elements above the diagonal sum up to at most 1e-32 (the square of 1e-16, about the rounding of
// float64) of the squares of all elements.
void diagonalize(std::vector<double>& a, std::vector<double>& v, std::int64_t n) {
  constexpr int kMaxSweeps = 60;  // over all pairs; about ten are needed
  const double norm = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double off = 0;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q)
        off += a[static_cast<std::size_t>(p * n + q)] * a[static_cast<std::size_t>(p * n + q)];
    }
    if (!(off > 1e-32 * norm)) return;
    for (std::int64_t p = 0; p < n; ++p) {
      for (std::int64_t q = p + 1; q < n; ++q) rotate(a.data(), v.data(), n, p, q);
    }
  }
}

}  // namespace

Tensor inverse_square_root(const Tensor& matrix, double cutoff) {
  const std::int64_t n = matrix.shape()[0];
  check(matrix.shape() == Shape{n, n} && matrix.dtype() == DType::float64,
        "inverse_square_root: the matrix must be square and float64; got {}", matrix.shape());
  std::vector<double> a(matrix.data<double>(), matrix.data<double>() + n * n), v(a.size(), 0.0), root(a.size(), 0.0);
  const auto at = [n](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * n + j); };
  for (std::int64_t i = 0; i < n; ++i) v[at(i, i)] = 1;
  diagonalize(a, v, n);
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, a[at(i, i)]);
  for (std::int64_t e = 0; e < n; ++e) {
    if (!(a[at(e, e)] > cutoff * largest)) continue;
    const double factor = 1 / std::sqrt(a[at(e, e)]);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) root[at(i, j)] += factor * v[at(i, e)] * v[at(j, e)];
    }
  }
  return tensor(std::span<const double>(root), {n, n});
}

Tensor nystrom_root(const Tensor& landmarks) {
  // Features of float32 inputs have relative errors of about 1e-7, which an inverse root of 1e-6 makes 1e-4.
  constexpr double kEigenvalueCutoff = 1e-6;
  const Tensor l = convert(landmarks, DType::float64);
  const std::int64_t m = l.shape()[0], d = l.shape()[1];
  Tensor kernel = empty({m, m}, DType::float64);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < m; ++j) {
      kernel.data<double>()[i * m + j] =
          std::exp(-0.5 * squared_distance(l.data<double>() + i * d, l.data<double>() + j * d, d));
    }
  }
  return inverse_square_root(kernel, kEigenvalueCutoff);
}

Tensor choose_landmarks(const Tensor& keys, std::int64_t m) {
  constexpr int kKMeansRounds = 20;  // passes over the keys, after which centres hardly move
  check(keys.shape().rank() == 2 && m >= 1 && m <= keys.shape()[0],
        "choose_landmarks: keys must be [N, D], and the number of landmarks from 1 to N; got {} and {}", keys.shape(),
        m);
  const Tensor from = convert(keys, DType::float64);
  const std::int64_t n = keys.shape()[0], d = keys.shape()[1];
  const double* const x = from.data<double>();
  Tensor centres = empty({m, d}, DType::float64);
  double* const c = centres.data<double>();
  for (std::int64_t i = 0; i < m; ++i) std::copy_n(x + (2 * i + 1) * n / (2 * m) * d, d, c + i * d);
  for (int round = 0; round < kKMeansRounds; ++round) {
    std::vector<double> sums(static_cast<std::size_t>(m * d), 0.0);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(m), 0);
    for (std::int64_t row = 0; row < n; ++row) {
      std::int64_t nearest = 0;
      double least = squared_distance(x + row * d, c, d);
      for (std::int64_t i = 1; i < m; ++i) {
        const double distance = squared_distance(x + row * d, c + i * d, d);
        if (distance < least) nearest = i, least = distance;
      }
      ++counts[static_cast<std::size_t>(nearest)];
      for (std::int64_t j = 0; j < d; ++j) sums[static_cast<std::size_t>(nearest * d + j)] += x[row * d + j];
    }
    for (std::int64_t i = 0; i < m; ++i) {
      const std::int64_t count = counts[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < d && count > 0; ++j) {
        c[i * d + j] = sums[static_cast<std::size_t>(i * d + j)] / static_cast<double>(count);
      }
    }
  }
  return centres;
}

}  // namespace maki
