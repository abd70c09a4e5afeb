// layer_norm against its closed form where differences are too inexact (narrow and nearly constant rows), norms of
// constant rows, norms and softmax against compositions of simple ops, and the inputs that they reject.
#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/kernels/targets.h"
#include "tests/ops/jacobian.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

// d y_i / d x_j = weight_i · rstd · (δ_ij − 1/n − x̂_i x̂_j / n), in long double.
std::vector<long double> closed_form(const Tensor& x, const Tensor& weight, long double eps) {
  const std::int64_t n = x.numel();
  const auto count = static_cast<long double>(n);
  long double mean = 0, variance = 0;
  for (std::int64_t i = 0; i < n; ++i) mean += static_cast<long double>(x.at(i)) / count;
  for (std::int64_t i = 0; i < n; ++i) {
    const long double centred = static_cast<long double>(x.at(i)) - mean;
    variance += centred * centred / count;
  }
  const long double rstd = 1 / std::sqrt(variance + eps);
  const auto normal = [&](std::int64_t i) { return (static_cast<long double>(x.at(i)) - mean) * rstd; };
  std::vector<long double> entries;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      entries.push_back(static_cast<long double>(weight.at(i)) * rstd *
                        ((i == j ? 1 : 0) - 1 / count - normal(i) * normal(j) / count));
    }
  }
  return entries;
}

// rms_norm composed of simple ops: x / √(mean(x²) + eps) · weight.
Tensor composed_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor square = mean(mul(x, x), {-1}, true);
  return mul(div(x, sqrt(add(square, full({1}, x.dtype(), eps)))), weight);
}
// layer_norm composed of simple ops: (x − mean) / √(variance + eps) · weight + bias.
Tensor composed_layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor centred = sub(x, mean(x, {-1}, true));
  const Tensor variance = mean(mul(centred, centred), {-1}, true);
  return add(mul(div(centred, sqrt(add(variance, full({1}, x.dtype(), eps)))), weight), bias);
}
Tensor composed_softmax(const Tensor& x) {
  const Tensor e = exp(x);
  return div(e, sum(e, {-1}, true));
}

void require_equivalent(const Case& a, const Case& b, double bound) {
  BoundCase bound_a(a, DType::float64), bound_b(b, DType::float64);
  const Evaluation one = evaluate(bound_a), other = evaluate(bound_b);
  REQUIRE(relative_error(one.output, other.output, 1e-3) < bound);
  REQUIRE(!one.gradients.empty());
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    REQUIRE(relative_error(one.gradients[i], other.gradients[i], 1e-3) < bound);
  }
}

}  // namespace

TEST_CASE("layer_norm of narrow and of nearly constant rows has the Jacobian of the closed form") {
  for (const std::int64_t cols : {1, 2, 3, 4, 17, 32}) {
    for (const double std : {0.0, 1e-9, 1e-5, 1e-3, 1.0}) {
      Draw draw(static_cast<std::uint64_t>(cols));
      const Tensor x = draw.normals({cols}, 3, std), weight = draw.normals({cols}, 1, 0.5);
      INFO(cols << " columns of deviation " << std);
      const Jacobian j = tape_jacobian(x, [&](const Tensor& v) { return layer_norm(v, weight); });
      const std::vector<long double> expected = closed_form(x, weight, 1e-5L);
      REQUIRE(j.entries.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        // 1e-11 is enough: the largest factor is 1/√eps = 316, and the mean of about 3 has a rounding error of 4e-16.
        const double gap = std::abs(j.entries[i] - static_cast<double>(expected[i]));
        REQUIRE(gap < 1e-11);
      }
    }
  }
}

TEST_CASE("layer_norm of a constant row gives the bias, and finite gradients, on every target") {
  on_every_target([] {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const std::int64_t cols : {1, 3, 7, 768}) {
        for (const double constant : {0.0, 0.1, 1.0 / 3, -1e3, 1e30}) {
          const Case drawn{{full({3, cols}, DType::float64, constant), full({cols}, DType::float64, 2)},
                           [](const std::vector<Tensor>& v) { return layer_norm(v[0], v[1], v[1]); }};
          BoundCase bound(drawn, dtype);
          const Evaluation result = evaluate(bound);
          INFO(cols << " columns of " << constant << " as " << to_string(dtype));
          for (std::int64_t i = 0; i < 3 * cols; ++i) {
            REQUIRE(result.output.at(i) == 2);
            REQUIRE(std::isfinite(result.gradients[0].at(i)));
          }
        }
      }
    }
  });
}

TEST_CASE("rms_norm of a constant row has the value of its formula, and finite gradients, on every target") {
  on_every_target([] {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const double tolerance = dtype == DType::float32 ? 1e-6 : 1e-13;
      for (const std::int64_t cols : {1, 3, 7, 768}) {
        for (const double constant : {0.0, 0.1, 1.0 / 3, -1e3, 1e30}) {
          const Case drawn{{full({3, cols}, DType::float64, constant), full({cols}, DType::float64, 2)},
                           [](const std::vector<Tensor>& v) { return rms_norm(v[0], v[1]); }};
          BoundCase bound(drawn, dtype);
          const Evaluation result = evaluate(bound);
          INFO(cols << " columns of " << constant << " as " << to_string(dtype));
          const double expected = 2 * constant / std::sqrt(constant * constant + 1e-5);
          for (std::int64_t i = 0; i < 3 * cols; ++i) {
            REQUIRE(std::abs(result.output.at(i) - expected) <= tolerance);
            REQUIRE(std::isfinite(result.gradients[0].at(i)));
          }
          for (std::int64_t i = 0; i < cols; ++i) REQUIRE(std::isfinite(result.gradients[1].at(i)));
        }
      }
    }
  });
}

TEST_CASE("the gradient of rms_norm at a row of zeros is that of a division by the root of eps, on every target") {
  on_every_target([] {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const std::int64_t cols : {1, 3, 7, 768}) {
        const Case drawn{{zeros({3, cols}, DType::float64), full({cols}, DType::float64, 2)},
                         [](const std::vector<Tensor>& v) { return rms_norm(v[0], v[1]); }};
        BoundCase bound(drawn, dtype);
        const Evaluation result = evaluate(bound);
        INFO(cols << " columns as " << to_string(dtype));
        const Tensor expected = scale(cotangent({3, cols}), 2 / std::sqrt(1e-5));
        REQUIRE(relative_error(result.gradients[0], expected) < (dtype == DType::float32 ? 1e-6 : 1e-14));
        for (std::int64_t i = 0; i < 3 * cols; ++i) REQUIRE(result.output.at(i) == 0);
        for (std::int64_t i = 0; i < cols; ++i) REQUIRE(result.gradients[1].at(i) == 0);
      }
    }
  });
}

TEST_CASE("layer_norm, rms_norm and softmax agree with compositions of simple ops") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Draw draw(seed);
    const Shape shape = draw.shape(3).with(-1, 9);
    const std::vector<Tensor> inputs = {draw.normals(shape), draw.normals({9}, 1, 0.5), draw.normals({9})};
    require_equivalent(
        {inputs, [](const std::vector<Tensor>& v) { return layer_norm(v[0], v[1], v[2], 1e-3); }},
        {inputs, [](const std::vector<Tensor>& v) { return composed_layer_norm(v[0], v[1], v[2], 1e-3); }}, 1e-12);
    const std::vector<Tensor> two = {inputs[0], inputs[1]};
    require_equivalent({two, [](const std::vector<Tensor>& v) { return rms_norm(v[0], v[1], 1e-3); }},
                       {two, [](const std::vector<Tensor>& v) { return composed_rms_norm(v[0], v[1], 1e-3); }}, 1e-12);
    require_equivalent({{inputs[0]}, [](const std::vector<Tensor>& v) { return softmax(v[0]); }},
                       {{inputs[0]}, [](const std::vector<Tensor>& v) { return composed_softmax(v[0]); }}, 1e-13);
    require_equivalent({{inputs[0]}, [](const std::vector<Tensor>& v) { return log_softmax(v[0]); }},
                       {{inputs[0]}, [](const std::vector<Tensor>& v) { return log(composed_softmax(v[0])); }}, 1e-13);
  }
}

TEST_CASE("rms_norm_heads has the bits of rms_norm of every head, and copies the other columns") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const std::int64_t rest : {0, 7}) {
      Draw draw(3);
      const std::vector<Tensor> inputs = {draw.normals({70, 3 * 12 + rest}), draw.normals({3 * 12}, 1, 0.5)};
      BoundCase one({inputs, [](const auto& v) { return rms_norm_heads(v[0], v[1], 3, 1e-3); }}, dtype);
      BoundCase two({inputs,
                     [=](const std::vector<Tensor>& v) {
                       std::vector<Tensor> parts;
                       for (std::int64_t h = 0; h < 3; ++h) {
                         parts.push_back(
                             rms_norm(slice(v[0], 1, 12 * h, 12 * h + 12), slice(v[1], 0, 12 * h, 12 * h + 12), 1e-3));
                       }
                       parts.push_back(slice(v[0], 1, 36, 36 + rest));
                       return concat(parts, 1);
                     }},
                    dtype);
      const Evaluation a = evaluate(one), b = evaluate(two);
      REQUIRE(same_bits(a.output, b.output));
      for (std::size_t i = 0; i < 2; ++i) {
        REQUIRE(relative_error(a.gradients[i], b.gradients[i]) < (dtype == DType::float32 ? 1e-6 : 1e-14));
      }
    }
  }
}

TEST_CASE("rms_norm_heads: the messages for inputs that it refuses") {
  const Tensor x = zeros({2, 6}, DType::float32);
  REQUIRE_THAT(refusal([&] { rms_norm_heads(x, zeros({8}, DType::float32), 2); }),
               ContainsSubstring("weight must be [K], with K at most the last extent of x [2, 6]; got [8]"));
  REQUIRE_THAT(refusal([&] { rms_norm_heads(x, zeros({2, 2}, DType::float32), 2); }), ContainsSubstring("got [2, 2]"));
  REQUIRE_THAT(refusal([&] { rms_norm_heads(x, zeros({4}, DType::float32), 3); }),
               ContainsSubstring("rms_norm_heads: 4 columns must be a multiple of the heads; got 3"));
  REQUIRE_THAT(refusal([&] { rms_norm_heads(x, zeros({4}, DType::float32), 0); }), ContainsSubstring("got 0"));
  REQUIRE_THAT(refusal([&] { rms_norm_heads(x, zeros({4}, DType::float32), 2, 2); }),
               ContainsSubstring("eps must be between 0 and 1; got 2"));
  REQUIRE_THAT(refusal([&] { rms_norm_heads(x, zeros({4}, DType::float64), 2); }),
               ContainsSubstring("float32 and float64"));
}

TEST_CASE("softmax of a row of −Inf is NaN, like 0/0") {
  const Tensor x = full({2, 5}, DType::float32, -std::numeric_limits<double>::infinity());
  for (std::int64_t i = 0; i < 10; ++i) {
    REQUIRE(std::isnan(softmax(x).at(i)));
    REQUIRE(std::isnan(log_softmax(x).at(i)));
  }
}

TEST_CASE("norms: the smallest and the largest eps are accepted") {
  const Tensor x = tensor(std::vector<double>{3, 1}, {1, 2}), weight = full({2}, DType::float64, 1);
  for (const double eps : {0.0, 1.0}) {
    REQUIRE(layer_norm(x, {}, {}, eps).at(0) == Approx(1 / std::sqrt(1 + eps)));
    REQUIRE(rms_norm(x, {}, eps).at(0) == Approx(3 / std::sqrt(5 + eps)));
    REQUIRE(rms_norm_heads(x, weight, 1, eps).at(0) == Approx(3 / std::sqrt(5 + eps)));
  }
}

TEST_CASE("norms: the messages for inputs that they reject") {
  const Tensor x = zeros({2, 6}, DType::float32), six = zeros({6}, DType::float32), two = zeros({2}, DType::float32);
  REQUIRE_THAT(refusal([&] { layer_norm(x, two); }),
               ContainsSubstring("weight must be [6], the last extent of x [2, 6]; got [2]"));
  REQUIRE_THAT(refusal([&] { layer_norm(x, six, two); }), ContainsSubstring("bias must be [6]"));
  REQUIRE_THAT(refusal([&] { layer_norm(x, convert(six, DType::float64)); }), ContainsSubstring("float32 and float64"));
  REQUIRE_THAT(refusal([&] { layer_norm(x, six, six, -1); }), ContainsSubstring("eps must be between 0 and 1; got -1"));
  REQUIRE_THAT(refusal([&] { layer_norm(x, six, six, 1.5); }), ContainsSubstring("between 0 and 1; got 1.5"));
  REQUIRE_THAT(refusal([&] { layer_norm(x, six, six, std::nan("")); }), ContainsSubstring("got nan"));
  REQUIRE_THAT(refusal([&] { layer_norm(zeros({}, DType::float32)); }), ContainsSubstring("got a scalar"));
  REQUIRE_THAT(refusal([&] { rms_norm(x, two); }), ContainsSubstring("rms_norm: weight must be [6], the last extent"));
  REQUIRE_THAT(refusal([&] { rms_norm(x, six, 1.5); }), ContainsSubstring("rms_norm: eps must be between 0 and 1"));
  REQUIRE_THAT(refusal([&] { rms_norm(Tensor()); }), ContainsSubstring("rms_norm: an input is an empty tensor"));
  REQUIRE_THAT(refusal([&] { softmax(zeros({}, DType::float32)); }),
               ContainsSubstring("softmax: x must have at least one axis"));
  REQUIRE_THAT(refusal([&] { log_softmax(Tensor()); }), ContainsSubstring("log_softmax: an input is an empty tensor"));
  REQUIRE_THAT(refusal([&] { log_softmax(zeros({}, DType::float32)); }),
               ContainsSubstring("log_softmax: x must have at least one axis"));
  REQUIRE_THAT(refusal([&] { softmax(zeros({3}, DType::int32)); }), ContainsSubstring("int32"));
}
