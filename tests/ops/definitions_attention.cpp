#include <cmath>
#include <functional>

#include "tests/ops/definitions.h"

namespace maki::tests::definitions {
namespace {

// The numbers of batches B, heads H, queries T and keys S, and D columns of a head.
struct Extents {
  std::int64_t batch, heads, queries, keys, size;

  std::int64_t weights() const { return batch * heads * queries * keys; }
  std::int64_t weight(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s) const {
    return ((b * heads + h) * queries + t) * keys + s;
  }
};

// Element `at` of head h of a row of x [B, rows, columns], where heads of `size` columns begin at column `first`.
const Number& of_head(const Exact& x, std::int64_t b, std::int64_t row, std::int64_t h, std::int64_t size,
                      std::int64_t at, std::int64_t first = 0) {
  return x[(b * x.shape()[1] + row) * x.shape()[2] + first + h * size + at];
}

// Which weights dropout keeps, by asking the op itself: `attend` is the op with scores of 0 for given k‖v, so that its
// output is 0 exactly where the weight of the only key with values of 1 was dropped, or masked.
Exact kept_weights(const Extents& n, double p, const Shape& kv, const std::function<Tensor(const Tensor&)>& attend) {
  Exact kept(Shape{n.weights()});
  for (std::int64_t s = 0; s < n.keys; ++s) {
    Tensor values = zeros(kv, DType::float64);
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      if (i / kv[2] % kv[1] == s && i % kv[2] >= kv[2] / 2) values.data<double>()[i] = 1;
    }
    Tape tape;
    const Recording on(tape, kRandom);
    const Exact y(attend(values));
    for (std::int64_t b = 0; b < n.batch; ++b) {
      for (std::int64_t h = 0; h < n.heads; ++h) {
        for (std::int64_t t = 0; t < n.queries; ++t) {
          kept[n.weight(b, h, t, s)] = of_head(y, b, t, h, n.size, 0) == Number(0) ? 0 : 1 / (1 - p);
        }
      }
    }
  }
  return kept;
}

// y_t = Σ_s softmax_s(score(b, h, t, s)) · kept · v_s over the keys that are visible(b, t, s). kv_head(h): the head of
// the values for head h of the queries. An empty `kept`: nothing is dropped.
struct Attended {
  std::function<bool(std::int64_t, std::int64_t, std::int64_t)> visible;
  std::function<Number(std::int64_t, std::int64_t, std::int64_t, std::int64_t)> score;
  std::function<std::int64_t(std::int64_t)> kv_head;
  Exact kept;
};

Exact attended(const Extents& n, const Exact& kv, const Attended& by) {
  Exact y(Shape{n.batch, n.queries, n.heads * n.size});
  const std::int64_t first = kv.shape()[2] / 2;
  for (std::int64_t row = 0; row < n.batch * n.heads * n.queries; ++row) {
    const std::int64_t b = row / n.queries / n.heads, h = row / n.queries % n.heads, t = row % n.queries;
    Number total = 0;
    std::vector<Number> weights(static_cast<std::size_t>(n.keys));
    for (std::int64_t s = 0; s < n.keys; ++s) {
      if (!by.visible(b, t, s)) continue;
      total += weights[static_cast<std::size_t>(s)] = std::exp(by.score(b, h, t, s));
    }
    for (std::int64_t s = 0; s < n.keys; ++s) {
      if (!by.visible(b, t, s)) continue;
      const Number kept = by.kept ? by.kept[n.weight(b, h, t, s)] : 1;
      for (std::int64_t d = 0; d < n.size; ++d) {
        y[(b * n.queries + t) * n.heads * n.size + h * n.size + d] +=
            weights[static_cast<std::size_t>(s)] / total * kept * of_head(kv, b, s, by.kv_head(h), n.size, d, first);
      }
    }
  }
  return y;
}

long double scale_of(double scale, std::int64_t size) {
  return scale == 0 ? 1 / std::sqrt(static_cast<long double>(size)) : static_cast<long double>(scale);
}

// Whether the mask, [T, S] or [B, T, S] and possibly absent, lets query t see key s.
bool allowed(const Tensor& mask, const Extents& n, std::int64_t b, std::int64_t t, std::int64_t s) {
  if (!mask) return true;
  const std::int64_t item = mask.shape().rank() == 3 ? b : 0;
  return mask.at((item * n.queries + t) * n.keys + s) != 0;
}

}  // namespace

Exact rotary(const Exact& x, const Tensor& angles, std::int64_t heads) {
  const std::int64_t tokens = x.shape()[1], cols = x.shape()[2], size = angles.shape()[1], half = size / 2;
  Exact y = x;
  for (std::int64_t row = 0; row < x.shape().rows(); ++row) {
    for (std::int64_t pair = 0; pair < heads * half; ++pair) {
      const std::int64_t i = pair % half, at = row * cols + pair / half * size + i;
      const long double cosine = angles.at(row % tokens * size + i), sine = angles.at(row % tokens * size + i + half);
      y[at] = x[at] * cosine - x[at + half] * sine;
      y[at + half] = x[at] * sine + x[at + half] * cosine;
    }
  }
  return y;
}

Exact attention(const Exact& qkv, const Attention& options) {
  const std::int64_t size = qkv.shape()[2] / (options.n_head + 2 * options.kv_heads());
  return attention(slice(qkv, -1, 0, options.n_head * size), slice(qkv, -1, options.n_head * size, qkv.shape()[2]),
                   options);
}

Exact attention(const Exact& q, const Exact& kv, const Attention& options) {
  const Extents n{q.shape()[0], options.n_head, q.shape()[1], options.keys == 0 ? kv.shape()[1] : options.keys,
                  q.shape()[2] / options.n_head};
  const auto kv_head = [&](std::int64_t h) { return h * options.kv_heads() / options.n_head; };
  Attended by{.visible =
                  [&](std::int64_t b, std::int64_t t, std::int64_t s) {
                    return (!options.causal || s <= t + n.keys - n.queries) &&
                           (!options.key_mask || options.key_mask.at(b * n.keys + s) != 0) &&
                           allowed(options.mask, n, b, t, s);
                  },
              .score =
                  [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s) {
                    Number product = 0;
                    for (std::int64_t d = 0; d < n.size; ++d) {
                      product += of_head(q, b, t, h, n.size, d) * of_head(kv, b, s, kv_head(h), n.size, d);
                    }
                    return product * scale_of(options.scale, n.size);
                  },
              .kv_head = kv_head,
              .kept = {}};
  if (options.dropout > 0) {
    by.kept = kept_weights(n, options.dropout, kv.shape(), [&](const Tensor& values) {
      return maki::attention(zeros(q.shape(), DType::float64), values, options);
    });
  }
  return attended(n, kv, by);
}

Exact relative_attention(const Exact& q, const Exact& kv, const Exact& r, const Exact& u, const Exact& v,
                         const RelativeAttention& options) {
  const Extents n{q.shape()[0], options.n_head, q.shape()[1], options.keys == 0 ? kv.shape()[1] : options.keys,
                  q.shape()[2] / options.n_head};
  Attended by{.visible = [&](std::int64_t, std::int64_t t, std::int64_t s) { return s <= t + n.keys - n.queries; },
              .score =
                  [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s) {
                    Number product = 0;
                    for (std::int64_t d = 0; d < n.size; ++d) {
                      const std::int64_t col = h * n.size + d, distance = t + n.keys - n.queries - s;
                      const Number& query = of_head(q, b, t, h, n.size, d);
                      product += (query + u[col]) * of_head(kv, b, s, h, n.size, d) +
                                 (query + v[col]) * r[distance * n.heads * n.size + col];
                    }
                    return product * scale_of(options.scale, n.size);
                  },
              .kv_head = [](std::int64_t h) { return h; },
              .kept = {}};
  if (options.dropout > 0) {
    by.kept = kept_weights(n, options.dropout, kv.shape(), [&](const Tensor& values) {
      const auto none = [](const Exact& x) { return zeros(x.shape(), DType::float64); };
      return maki::relative_attention(none(q), values, none(r), none(u), none(v), options);
    });
  }
  return attended(n, kv, by);
}

Exact linear_attention(const Exact& q, const Exact& k, const Exact& v, const LinearAttention& options) {
  const std::int64_t queries = q.shape()[1], keys = k.shape()[1], heads = options.n_head;
  const std::int64_t features = q.shape()[2] / heads, size = v.shape()[2] / heads;
  Exact y(Shape{q.shape()[0], queries, v.shape()[2]});
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const std::int64_t b = i / (heads * size) / queries, t = i / (heads * size) % queries;
    const std::int64_t h = i / size % heads, d = i % size;
    Number total = 0;
    for (std::int64_t s = 0; s < (options.causal ? t + 1 : keys); ++s) {
      Number weight = 0;
      for (std::int64_t f = 0; f < features; ++f) {
        weight += of_head(q, b, t, h, features, f) * of_head(k, b, s, h, features, f);
      }
      total += weight;
      y[i] += weight * of_head(v, b, s, h, size, d);
    }
    y[i] /= options.floor > 0 && total.real() < options.floor ? static_cast<long double>(options.floor) : total;
  }
  return y;
}

}  // namespace maki::tests::definitions
