// What the papers claim of sinusoidal and of rotary positions, at 1e-12.
#include "nn/positions.h"

#include <cmath>
#include <numbers>
#include <thread>

#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr double kMaxPositionError = 1e-12;

double dot(const Tensor& a, std::int64_t i, const Tensor& b, std::int64_t j) {
  const std::int64_t n = a.shape().cols();
  double sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += a.at(i * n + c) * b.at(j * n + c);
  return sum;
}

Tensor random_rows(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test);
  Tensor x = empty({rows, cols}, DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = stream.normal(static_cast<std::uint64_t>(i));
  return x;
}

// One row [D] at T positions from `first` on, rotated: [T, D].
Tensor rotated(const Tensor& row, std::int64_t tokens, double base, std::int64_t first = 0) {
  const std::int64_t d = row.shape().cols();
  Tensor x = empty({1, tokens, d}, row.dtype());
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = row.at(i % d);
  return reshape(rotary(x, rotary_angles(tokens, d, base, row.dtype(), first), 1), {tokens, d});
}

}  // namespace

TEST_CASE("sinusoidal positions have the squared norm D/2, and their products depend on the distance alone") {
  for (const double base : {10000.0, 50.0}) {
    constexpr std::int64_t kLength = 100, kWidth = 48;
    const Tensor p = sinusoidal_positions(kLength, kWidth, base, DType::float64);
    for (std::int64_t i = 0; i < kLength; ++i) {
      REQUIRE(std::abs(dot(p, i, p, i) - kWidth / 2) < kMaxPositionError);
      for (std::int64_t j = 0; j <= i; ++j)
        REQUIRE(std::abs(dot(p, i, p, j) - dot(p, i - j, p, 0)) < kMaxPositionError);
    }
    REQUIRE(dot(p, 1, p, 0) < kWidth / 2 - 0.1);
  }
}

TEST_CASE("one linear map of sinusoidal positions advances every position by the same distance") {
  constexpr std::int64_t kLength = 60, kWidth = 20, kSteps = 7;
  const double base = 10000;
  const Tensor p = sinusoidal_positions(kLength + kSteps, kWidth, base, DType::float64);
  // M [D, D] with blocks (cos kθ, sin kθ; −sin kθ, cos kθ), which do not depend on the position.
  Tensor m = zeros({kWidth, kWidth}, DType::float64);
  for (std::int64_t c = 0; c < kWidth; c += 2) {
    const double angle = kSteps / std::pow(base, static_cast<double>(c) / kWidth);
    double* const block = m.data<double>() + c * kWidth + c;
    block[0] = block[kWidth + 1] = std::cos(angle);
    block[1] = std::sin(angle);
    block[kWidth] = -std::sin(angle);
  }
  const Tensor advanced = matmul(slice(p, 0, 0, kLength), m, false, true);
  for (std::int64_t i = 0; i < advanced.numel(); ++i) {
    REQUIRE(std::abs(advanced.at(i) - p.at(kSteps * kWidth + i)) < kMaxPositionError);
  }
}

TEST_CASE("the product of a rotated query and key depends on the distance of their positions alone") {
  constexpr std::int64_t kTokens = 40, kSize = 22;
  const Tensor rows = random_rows(2, kSize, 1);
  const Tensor q = rotated(slice(rows, 0, 0, 1), kTokens, 10000), k = rotated(slice(rows, 0, 1, 2), kTokens, 10000);
  double spread = 0;
  for (std::int64_t i = 0; i < kTokens; ++i) {
    REQUIRE(std::abs(dot(q, i, q, i) - dot(q, 0, q, 0)) < kMaxPositionError);  // a rotation keeps the length
    for (std::int64_t j = 0; j < kTokens; ++j) {
      const double wanted = i >= j ? dot(q, i - j, k, 0) : dot(q, 0, k, j - i);
      REQUIRE(std::abs(dot(q, i, k, j) - wanted) < kMaxPositionError);
      spread = std::max(spread, std::abs(dot(q, i, k, j) - dot(q, 0, k, 0)));
    }
  }
  REQUIRE(spread > 1);
  // At distances of a million the angles of consecutive positions are still right.
  const std::int64_t far = 1'000'000;
  const Tensor distant = rotated(slice(rows, 0, 0, 1), 3, 10000, far);
  const Tensor distant_k = rotated(slice(rows, 0, 1, 2), 3, 10000, far);
  REQUIRE(std::abs(dot(distant, 2, distant_k, 0) - dot(q, 2, k, 0)) < 1e-8);
}

TEST_CASE("a position's row does not depend on the range in which it is computed") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const PositionTable::Function function : {&sinusoidal_positions, &rotary_angles}) {
      const Tensor all = function(50, 10, 100, dtype, 0);
      REQUIRE(same_bits(function(13, 10, 100, dtype, 37), 0, all, 370, 130));
      const PositionTable table(function, 10, 100, dtype);
      REQUIRE(same_bits(table.rows(2, 5), 0, all, 20, 30));
      const Tensor early = table.rows(0, 3);
      REQUIRE(same_bits(table.rows(4, 50), 0, all, 40, 460));
      REQUIRE(table.rows(7, 7).shape() == Shape{0, 10});
      REQUIRE(same_bits(early, 0, all, 0, 30));  // still valid
    }
  }
  REQUIRE_THROWS_WITH(sinusoidal_positions(3, 4, 1, DType::float64), ContainsSubstring("above 1; got 1"));
  REQUIRE_THROWS_WITH(rotary_angles(3, 5, 100, DType::float64), ContainsSubstring("even number of columns; got 5"));
}

TEST_CASE("a table of positions may be read by several threads") {
  const PositionTable table(rotary_angles, 8, 100, DType::float64);
  const Tensor all = rotary_angles(256, 8, 100, DType::float64);
  std::array<bool, 4> right{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      bool good = true;
      for (std::int64_t end = 1; end <= 256; ++end) good = good && same_bits(table.rows(0, end), 0, all, 0, end * 8);
      right[t] = good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool good : right) REQUIRE(good);
}

TEST_CASE("a pair of columns of sinusoidal positions has turned once after its wavelength") {
  for (const double base : {10000.0, 50.0}) {
    for (const std::int64_t width : {1, 8, 9}) {
      const std::vector<double> wavelengths = position_wavelengths(width, base);
      REQUIRE(std::ssize(wavelengths) == (width + 1) / 2);
      REQUIRE(std::abs(wavelengths[0] - 2 * std::numbers::pi) < kMaxPositionError);
      const Tensor p = sinusoidal_positions(2, width, base, DType::float64);
      for (std::size_t i = 1; 2 * i + 1 < static_cast<std::size_t>(width); ++i) {
        const double* const row = p.data<double>() + width;
        const double angle = std::atan2(row[2 * i], row[2 * i + 1]);
        REQUIRE(std::abs(wavelengths[i] * angle - 2 * std::numbers::pi) < kMaxPositionError);
      }
    }
  }
  REQUIRE_THROWS_AS(position_wavelengths(8, 1), Error);
}
