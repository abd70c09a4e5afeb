// Every entry of the Jacobians of softmax, log_softmax, layer_norm, rms_norm and cross_entropy, for rows of up to 32
// columns.
// Attention's Jacobian is in attention_test.cpp.
#include "tests/ops/jacobian.h"

#include <cmath>

#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/ops/op_table.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int64_t kWidths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32};

// The entries between different rows.
Masked other_rows(std::int64_t cols) {
  return [cols](std::int64_t out, std::int64_t in) { return out / cols != in / cols; };
}

// The entries of a weight or bias in other columns.
Masked other_columns(std::int64_t cols) {
  return [cols](std::int64_t out, std::int64_t in) { return out % cols != in; };
}

// Two rows for a norm. 1 and −1 among at most 32 values give a deviation, and a root mean square, of at least 0.25.
Tensor rows_with_spread(Draw& draw, std::int64_t cols) {
  Tensor x = draw.normals({2, cols});
  for (std::int64_t row = 0; row < 2; ++row) {
    x.data<double>()[row * cols] = 1;
    x.data<double>()[row * cols + 1] = -1;
  }
  return x;
}

}  // namespace

TEST_CASE("Jacobian of softmax: every entry, symmetric, rows sum to 0") {
  for (const std::int64_t cols : kWidths) {
    Draw draw(static_cast<std::uint64_t>(cols));
    INFO("columns " << cols);
    const Jacobian j = require_jacobian(draw.normals({2, cols}, 0, 2), softmax, 1e-9, other_rows(cols));
    double largest = 0;
    for (std::int64_t out = 0; out < j.outputs; ++out) {
      double sum = 0;
      for (std::int64_t in = 0; in < j.inputs; ++in) {
        REQUIRE(std::abs(j(out, in) - j(in, out)) <= 1e-14);
        sum += j(out, in);
        largest = std::max(largest, std::abs(j(out, in)));
      }
      REQUIRE(std::abs(sum) <= 1e-14);
    }
    REQUIRE((cols == 1 || largest > 0.01));
  }
}

TEST_CASE("Jacobian of log_softmax: every entry") {
  for (const std::int64_t cols : kWidths) {
    Draw draw(static_cast<std::uint64_t>(cols));
    INFO("columns " << cols);
    require_jacobian(draw.normals({2, cols}, 0, 2), log_softmax, 1e-9, other_rows(cols));
  }
}

TEST_CASE("Jacobian of layer_norm in x, weight and bias: every entry") {
  for (const std::int64_t cols : kWidths) {
    if (cols < 4) continue;  // differences are less exact than 1e-9 there: norm_test.cpp uses the closed form
    Draw draw(static_cast<std::uint64_t>(cols));
    INFO("columns " << cols);
    const Tensor x = rows_with_spread(draw, cols);
    const Tensor weight = draw.normals({cols}, 1, 0.5), bias = draw.normals({cols});
    require_jacobian(
        x, [&](const Tensor& v) { return layer_norm(v, weight, bias); }, 1e-9, other_rows(cols));
    require_jacobian(
        x, [&](const Tensor& v) { return layer_norm(v); }, 1e-9, other_rows(cols));
    require_jacobian(
        weight, [&](const Tensor& v) { return layer_norm(x, v, bias); }, 1e-9, other_columns(cols));
    require_jacobian(
        bias, [&](const Tensor& v) { return layer_norm(x, weight, v); }, 1e-9, other_columns(cols));
  }
}

TEST_CASE("Jacobian of rms_norm in x and weight: every entry") {
  for (const std::int64_t cols : kWidths) {
    if (cols < 4) continue;  // as for layer_norm
    Draw draw(static_cast<std::uint64_t>(cols));
    INFO("columns " << cols);
    const Tensor x = rows_with_spread(draw, cols), weight = draw.normals({cols}, 1, 0.5);
    require_jacobian(
        x, [&](const Tensor& v) { return rms_norm(v, weight); }, 1e-9, other_rows(cols));
    require_jacobian(
        x, [&](const Tensor& v) { return rms_norm(v); }, 1e-9, other_rows(cols));
    require_jacobian(
        weight, [&](const Tensor& v) { return rms_norm(x, v); }, 1e-9, other_columns(cols));
  }
}

TEST_CASE("Jacobian of cross_entropy: every entry, exactly 0 where the target is ignored") {
  for (const std::int64_t cols : kWidths) {
    for (const double smoothing : {0.0, 0.1}) {
      Draw draw(static_cast<std::uint64_t>(cols));
      INFO("columns " << cols << ", label smoothing " << smoothing);
      const auto last = static_cast<std::int32_t>(cols - 1);
      const Tensor targets = tensor(std::vector<std::int32_t>{last, -1, 0}, {3});
      require_jacobian(
          draw.normals({3, cols}, 0, 2),
          [&](const Tensor& x) { return cross_entropy(x, targets, {.label_smoothing = smoothing}); }, 1e-9,
          [cols](std::int64_t, std::int64_t in) { return in / cols == 1; });
    }
  }
}
