#include "tests/ops/definitions.h"

#include <algorithm>
#include <cmath>

namespace maki::tests::definitions {
namespace {

// Applies f(row of x, row of y, columns) to every row.
template <class Function>
Exact rows_of(const Exact& x, const Function& f) {
  Exact y(x.shape());
  const std::int64_t cols = x.shape().cols();
  for (std::int64_t at = 0; at < x.numel(); at += cols) f(&x[at], &y[at], cols);
  return y;
}

// The shape with one more axis behind it.
Shape with_last(const Shape& shape, std::int64_t extent) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.push_back(extent);
  return Shape(std::span<const std::int64_t>(extents));
}

// The logarithm of Σ exp(x) of a row.
Number log_sum_exp(const Number* x, std::int64_t cols) {
  long double largest = x[0].real();
  for (std::int64_t i = 1; i < cols; ++i) largest = std::max(largest, x[i].real());
  Number total = 0;
  for (std::int64_t i = 0; i < cols; ++i) total += std::exp(x[i] - largest);
  return largest + std::log(total);
}

// The mean of the squares of a row.
Number mean_square(const Number* x, std::int64_t cols) {
  Number total = 0;
  for (std::int64_t i = 0; i < cols; ++i) total += x[i] * x[i];
  return total / static_cast<long double>(cols);
}

}  // namespace

Exact::Exact(const Tensor& x) {
  if (!x) return;
  *this = Exact(x.shape());
  for (std::int64_t i = 0; i < x.numel(); ++i) (*this)[i] = x.at(i);
}

Tensor mask_tensor(const Exact& mask) {
  Tensor x = empty(mask.shape(), DType::int32);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<std::int32_t>()[i] = static_cast<std::int32_t>(mask.integer(i));
  return x;
}

Exact matmul(const Exact& a, const Exact& b, bool transpose_a, bool transpose_b) {
  const std::int64_t rows = a.shape()[transpose_a ? -1 : -2], inner = a.shape()[transpose_a ? -2 : -1];
  const std::int64_t cols = b.shape()[transpose_b ? -2 : -1];
  const Shape& leading = a.shape().rank() > b.shape().rank() ? a.shape() : b.shape();
  Exact y(leading.with(-2, rows).with(-1, cols));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const std::int64_t item = i / cols / rows, row = i / cols % rows, col = i % cols;
    const std::int64_t a_from = a.shape().rank() > 2 ? item * rows * inner : 0;
    const std::int64_t b_from = b.shape().rank() > 2 ? item * inner * cols : 0;
    for (std::int64_t k = 0; k < inner; ++k) {
      y[i] += a[a_from + (transpose_a ? k * rows + row : row * inner + k)] *
              b[b_from + (transpose_b ? col * inner + k : k * cols + col)];
    }
  }
  return y;
}

Exact linear(const Exact& x, const Exact& weight, const Exact& bias) {
  const std::int64_t in = x.shape().cols(), out = weight.shape()[0];
  Exact y(x.shape().with(-1, out));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    if (bias) y[i] = bias[i % out];
    for (std::int64_t k = 0; k < in; ++k) y[i] += x[i / out * in + k] * weight[i % out * in + k];
  }
  return y;
}

Exact linear_gelu(const Exact& x, const Exact& weight, const Exact& bias, Gelu form) {
  return gelu(linear(x, weight, bias), form);
}

Exact gelu_feed_forward(const Exact& x, const Exact& up, const Exact& up_bias, const Exact& down,
                        const Exact& down_bias, Gelu form) {
  return linear(linear_gelu(x, up, up_bias, form), down, down_bias);
}

Exact short_conv(const Exact& x, const Exact& weight, std::int64_t ahead) {
  const std::int64_t tokens = x.shape()[1], cols = x.shape()[2];
  Exact y(x.shape());
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    for (std::int64_t k = 0; k < weight.shape()[0]; ++k) {
      const std::int64_t token = i / cols % tokens + ahead - k;
      if (token >= 0 && token < tokens) y[i] += weight[k * cols + i % cols] * x[i + (ahead - k) * cols];
    }
  }
  return y;
}

Exact softmax(const Exact& x) { return exp(log_softmax(x)); }

Exact log_softmax(const Exact& x) {
  return rows_of(x, [](const Number* from, Number* to, std::int64_t cols) {
    const Number total = log_sum_exp(from, cols);
    for (std::int64_t i = 0; i < cols; ++i) to[i] = from[i] - total;
  });
}

Exact layer_norm(const Exact& x, const Exact& weight, const Exact& bias, double eps) {
  const Exact centred = rows_of(x, [](const Number* from, Number* to, std::int64_t cols) {
    Number total = 0;
    for (std::int64_t i = 0; i < cols; ++i) total += from[i];
    for (std::int64_t i = 0; i < cols; ++i) to[i] = from[i] - total / static_cast<long double>(cols);
  });
  const Exact y = rms_norm(centred, weight, eps);
  return bias ? add(y, bias) : y;
}

Exact rms_norm(const Exact& x, const Exact& weight, double eps) {
  const Exact y = rows_of(x, [eps](const Number* from, Number* to, std::int64_t cols) {
    const Number size = std::sqrt(mean_square(from, cols) + static_cast<long double>(eps));
    for (std::int64_t i = 0; i < cols; ++i) to[i] = from[i] / size;
  });
  return weight ? mul(y, weight) : y;
}

Exact rms_norm_heads(const Exact& x, const Exact& weight, std::int64_t heads, double eps) {
  const std::int64_t normalized = weight.shape()[0], size = normalized / heads;
  std::vector<Exact> parts;
  for (std::int64_t at = 0; at < normalized; at += size) {
    parts.push_back(rms_norm(slice(x, -1, at, at + size), slice(weight, 0, at, at + size), eps));
  }
  parts.push_back(slice(x, -1, normalized, x.shape().cols()));
  return concat(parts, -1);
}

Exact embedding(const Exact& table, const Exact& ids) {
  Exact one_id(with_last(ids.shape(), 1));
  for (std::int64_t i = 0; i < ids.numel(); ++i) one_id[i] = ids[i];
  return embedding_sum(table, one_id);
}

Exact embedding_sum(const Exact& table, const Exact& ids) {
  const std::int64_t cols = table.shape()[1], several = ids.shape().cols();
  Exact y(ids.shape().with(-1, cols));
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    const std::int64_t to = i / several * cols, from = ids.integer(i) * cols;
    for (std::int64_t j = 0; from >= 0 && j < cols; ++j) y[to + j] += table[from + j];
  }
  return y;
}

Exact one_hot(const Exact& ids, std::int64_t classes) {
  Exact y(with_last(ids.shape(), classes));
  for (std::int64_t i = 0; i < ids.numel(); ++i) y[i * classes + ids.integer(i)] = 1;
  return y;
}

Exact mse(const Exact& prediction, const Exact& target, const MeanSquaredError& options) {
  const Exact difference = sub(prediction, target), squares = mul(difference, difference);
  return options.sum ? sum(squares, {}, false) : mean(squares, {}, false);
}

Exact cross_entropy(const Exact& logits, const Exact& targets, const CrossEntropy& options) {
  const std::int64_t cols = logits.shape().cols();
  const auto smoothing = static_cast<long double>(options.label_smoothing);
  const Exact logarithms = log_softmax(logits);
  Exact loss((Shape()));
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < targets.numel(); ++row) {
    if (targets.integer(row) == options.ignored) continue;
    ++counted;
    for (std::int64_t i = 0; i < cols; ++i) {
      const long double target = i == targets.integer(row) ? 1 - smoothing : 0;
      loss[0] -= (target + smoothing / static_cast<long double>(cols)) * logarithms[row * cols + i];
    }
  }
  if (!options.sum && counted > 0) loss[0] /= static_cast<long double>(counted);
  return loss;
}

Exact expected_cross_entropy(const Exact& logits, const Tensor& expected) {
  const Exact logarithms = log_softmax(logits);
  Exact loss((Shape()));
  for (std::int64_t i = 0; i < logits.numel(); ++i)
    loss[0] -= static_cast<long double>(expected.data<double>()[i]) * logarithms[i];
  return loss;
}

Exact linear_cross_entropy(const Exact& x, const Exact& weight, const Exact& targets, const CrossEntropy& options) {
  return cross_entropy(linear(x, weight), targets, options);
}

}  // namespace maki::tests::definitions
