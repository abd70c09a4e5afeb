// Layers at values computed by hand, and a whole Gpt against the formulas of the papers in plain loops.
#include "nn/layers.h"

#include <cmath>
#include <complex>
#include <functional>

#include "nn/names.h"
#include "tests/catch.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Matrix = std::vector<std::vector<double>>;  // [rows][columns]

// The model of nn/models/gpt.h for one sequence, written with plain loops instead of tensors.
class PlainGpt {
 public:
  explicit PlainGpt(const SmallGpt& gpt) : gpt_(gpt.model), store_(gpt.store), c_(gpt.model.config) {}

  Matrix logits(const std::vector<std::int32_t>& ids) const {
    Matrix x(ids.size(), std::vector<double>(size(c_.n_embd)));
    for (std::size_t t = 0; t < ids.size(); ++t) {
      for (std::size_t c = 0; c < x[t].size(); ++c) {
        const double token = weight("wte.weight", static_cast<std::size_t>(ids[t]), c);
        x[t][c] = token;
        if (c_.positions == Positions::learned) x[t][c] = token + weight("wpe.weight", t, c);
        if (c_.positions == Positions::sinusoidal) {
          x[t][c] = token * std::sqrt(static_cast<double>(c_.n_embd)) + sinusoid(t, c);
        }
      }
    }
    if (gpt_.input.ngram) add_ngrams(x, ids);
    for (std::int64_t i = 0; i < c_.n_layer; ++i) {
      const std::string h = "h." + std::to_string(i);
      x = residual(x, h + ".ln_1", [&](const Matrix& y) { return attention(conv(y, h, "1"), h + ".attn"); });
      x = residual(x, h + ".ln_2", [&](const Matrix& y) { return feed_forward(conv(y, h, "2"), h + ".mlp"); });
    }
    if (c_.norm_order == NormOrder::pre) x = norm(x, "ln_f");
    return linear(x, c_.tie_weights ? "wte" : "lm_head");
  }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  double weight(const std::string& name, std::size_t row, std::size_t column) const {
    const Tensor& w = store_.find(name).value();
    return w.at(static_cast<std::int64_t>(row) * w.shape().cols() + static_cast<std::int64_t>(column));
  }
  double bias(const std::string& layer, std::size_t i) const {
    const bool has = c_.bias && layer != "wte" && layer != "lm_head";
    return has ? store_.find(layer + ".bias").value().at(static_cast<std::int64_t>(i)) : 0;
  }
  // Which rows belong to a token is the subject of ngram_test.cpp.
  void add_ngrams(Matrix& x, const std::vector<std::int32_t>& ids) const {
    const Tensor rows = gpt_.input.ngram->rows(tensor(ids, {1, std::ssize(ids)}));
    const std::size_t orders = size(rows.shape()[2]);
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t k = 0; k < orders; ++k) {
        const std::int32_t row = rows.values<std::int32_t>()[t * orders + k];
        for (std::size_t c = 0; row >= 0 && c < x[t].size(); ++c) x[t][c] += weight("ngram.weight", size(row), c);
      }
    }
  }
  Matrix conv(const Matrix& x, const std::string& h, const char* number) const {
    if (c_.conv_width == 0) return x;
    Matrix y(x.size(), std::vector<double>(x[0].size()));
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t k = 0; k < size(c_.conv_width) && k <= t; ++k) {
        for (std::size_t i = 0; i < y[t].size(); ++i) {
          y[t][i] += weight(h + ".conv_" + number + ".weight", k, i) * x[t - k][i];
        }
      }
    }
    return y;
  }
  double sinusoid(std::size_t t, std::size_t c) const {
    const double pair = static_cast<double>(c / 2);
    const double angle = static_cast<double>(t) / std::pow(c_.position_base, 2 * pair / static_cast<double>(c_.n_embd));
    return c % 2 == 0 ? std::sin(angle) : std::cos(angle);
  }

  Matrix linear(const Matrix& x, const std::string& layer) const {
    const std::size_t out = size(store_.find(layer + ".weight").shape()[0]);
    Matrix y(x.size(), std::vector<double>(out));
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t o = 0; o < out; ++o) {
        y[t][o] = bias(layer, o);
        for (std::size_t i = 0; i < x[t].size(); ++i) y[t][o] += x[t][i] * weight(layer + ".weight", o, i);
      }
    }
    return y;
  }

  Matrix norm(Matrix x, const std::string& layer) const {
    for (std::vector<double>& row : x) {
      const auto n = static_cast<double>(row.size());
      const bool centred = c_.norm == NormKind::layer;
      double mean = 0, variance = 0;
      if (centred) {
        for (const double v : row) mean += v / n;
      }
      for (const double v : row) variance += (v - mean) * (v - mean) / n;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double shift = centred ? bias(layer, i) : 0;
        row[i] = (row[i] - mean) / std::sqrt(variance + c_.norm_epsilon) * weight(layer + ".weight", 0, i) + shift;
      }
    }
    return x;
  }

  Matrix residual(const Matrix& x, const std::string& ln, const std::function<Matrix(const Matrix&)>& f) const {
    Matrix y = f(c_.norm_order == NormOrder::pre ? norm(x, ln) : x);
    for (std::size_t t = 0; t < y.size(); ++t) {
      for (std::size_t i = 0; i < y[t].size(); ++i) y[t][i] += x[t][i];
    }
    return c_.norm_order == NormOrder::pre ? y : norm(y, ln);
  }

  Matrix feed_forward(const Matrix& x, const std::string& layer) const {
    Matrix y = linear(x, layer + ".c_fc");
    for (std::vector<double>& row : y) {
      if (c_.activation == Activation::swiglu) {
        const std::size_t half = row.size() / 2;
        for (std::size_t i = 0; i < half; ++i) row[i] = activation(row[i]) * row[half + i];
        row.resize(half);
      } else {
        for (double& v : row) v = activation(v);
      }
    }
    return linear(y, layer + ".c_proj");
  }
  double activation(double v) const {
    switch (c_.activation) {
      case Activation::gelu:
        return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0)));
      case Activation::gelu_tanh:
        return v * 0.5 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
      case Activation::relu:
        return v > 0 ? v : 0;
      case Activation::relu_squared:
        return v > 0 ? v * v : 0;
      case Activation::silu:
      case Activation::swiglu:
        return v / (1 + std::exp(-v));
    }
    return 0;
  }

  Matrix attention(const Matrix& x, const std::string& layer) const {
    Matrix qkv = linear(x, layer + ".c_attn");
    const std::size_t c = size(c_.n_embd), d = c / size(c_.n_head);
    const std::size_t share = c_.n_kv_head > 0 ? size(c_.n_head / c_.n_kv_head) : 1, kv = c / share;
    if (c_.qk_norm) normalize_heads(qkv, c + kv, d, layer + ".qk_norm");
    if (c_.positions == Positions::rotary) rotate(qkv, c + kv, d);
    Matrix y(x.size(), std::vector<double>(c));
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t first = 0; first < c; first += d) {  // head by head
        const std::size_t k = c + first / d / share * d, v = k + kv;
        std::vector<double> p(t + 1);
        double total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (std::size_t i = 0; i < d; ++i) score += qkv[t][first + i] * qkv[s][k + i];
          total += p[s] = std::exp(score / std::sqrt(static_cast<double>(d)));
        }
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t i = 0; i < d; ++i) y[t][first + i] += p[s] / total * qkv[s][v + i];
        }
      }
    }
    return linear(y, layer + ".c_proj");
  }

  void normalize_heads(Matrix& x, std::size_t columns, std::size_t d, const std::string& gains) const {
    for (std::vector<double>& row : x) {
      for (std::size_t first = 0; first < columns; first += d) {
        double squares = 0;
        for (std::size_t i = first; i < first + d; ++i) squares += row[i] * row[i] / static_cast<double>(d);
        for (std::size_t i = first; i < first + d; ++i) row[i] *= weight(gains, 0, i) / std::sqrt(squares + 1e-5);
      }
    }
  }

  // Rotates pairs (i, i + d/2) of every head of d columns among the first `columns` of row t by t / base^(2i/d), as a
  // multiplication of complex numbers.
  void rotate(Matrix& x, std::size_t columns, std::size_t d) const {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t first = 0; first < columns; first += d) {
        for (std::size_t i = first; i < first + d / 2; ++i) {
          const double exponent = 2 * static_cast<double>(i - first) / static_cast<double>(d);
          const double angle = static_cast<double>(t) / std::pow(c_.position_base, exponent);
          const std::complex<double> turned = std::complex(x[t][i], x[t][i + d / 2]) * std::polar(1.0, angle);
          x[t][i] = turned.real();
          x[t][i + d / 2] = turned.imag();
        }
      }
    }
  }

  const Gpt& gpt_;
  const ParameterStore& store_;
  TransformerConfig c_;
};

}  // namespace

TEST_CASE("a Gpt computes the formulas of the papers") {
  std::vector<TransformerConfig> configs(6, kSmall);
  configs[1].tie_weights = configs[1].bias = false;
  configs[2].norm_order = NormOrder::post;
  configs[2].activation = Activation::relu;
  configs[3].positions = Positions::sinusoidal;
  configs[3].activation = Activation::silu;
  configs[4].n_head = 3;
  configs[4].activation = Activation::gelu_tanh;
  configs[5].n_embd = 15;  // odd: the last column of the sinusoids is a sine without its cosine
  configs[5].n_head = 5;
  configs[5].positions = Positions::sinusoidal;
  configs[5].position_base = 20;
  for (const TransformerConfig& config : gpt_variants()) configs.push_back(config);
  configs.push_back(kSmall);
  configs.back().activation = Activation::relu_squared;
  configs.push_back(kSmall);
  configs.back().norm_order = NormOrder::post;
  add_extras(configs.back());
  configs.push_back(configs.back());
  configs.back().n_head = 6;
  configs.back().n_kv_head = 2;
  configs.back().positions = Positions::rotary;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    SmallGpt gpt(configs[i], DType::float64);
    gpt.randomize(51);
    const Tensor ids = random_ids(2, 9, 7, 52), logits = gpt.model.logits(ids);
    REQUIRE(logits.shape() == Shape{2, 9, 7});
    for (std::int64_t b = 0; b < 2; ++b) {
      const auto row = ids.values<std::int32_t>().subspan(static_cast<std::size_t>(b) * 9, 9);
      const Matrix expected = PlainGpt(gpt).logits({row.begin(), row.end()});
      for (std::int64_t k = 0; k < 63; ++k) {
        INFO("variant " << i << " (" << describe(configs[i]) << "), sequence " << b << ", logit " << k);
        const double e = expected[static_cast<std::size_t>(k / 7)][static_cast<std::size_t>(k % 7)];
        REQUIRE(std::abs(logits.at(b * 63 + k) - e) <= 1e-12 * (1 + std::abs(e)));
      }
    }
  }
}

TEST_CASE("scopes build the paths of parameter names") {
  ParameterStore store;
  const Scope scope(store);
  REQUIRE((scope / "h" / 3 / "attn").parameter("weight", {2}, init::constant(0)).name() == "h.3.attn.weight");
  REQUIRE(scope.parameter("scale", {1}, init::constant(0)).name() == "scale");
  REQUIRE_THROWS_WITH(scope.parameter("scale", {1}, init::constant(0)), ContainsSubstring("scale"));
}

TEST_CASE("a linear layer can begin with weights of 0") {
  ParameterStore store;
  const Linear layer(Scope(store), 16, 8, /*with_bias=*/true, init::constant(0));
  store.seal(1);
  for (std::int64_t i = 0; i < 128; ++i) REQUIRE(layer.weight.value().at(i) == 0);
}

TEST_CASE("by default a linear layer has PyTorch's initial values") {
  ParameterStore store;
  const Linear layer(Scope(store) / "layer", 16, 8), plain(Scope(store) / "plain", 16, 8, /*with_bias=*/false);
  store.seal(1);
  double largest = 0;
  for (std::int64_t i = 0; i < 128; ++i) largest = std::max(largest, std::abs(layer.weight.value().at(i)));
  REQUIRE(largest <= 0.25);
  REQUIRE(largest > 0.2);
  REQUIRE(layer.bias != nullptr);
  REQUIRE(plain.bias == nullptr);
  const Tensor x = full({2, 3, 16}, DType::float32, 1);
  REQUIRE(layer(x).shape() == Shape{2, 3, 8});
  REQUIRE(plain(x).shape() == Shape{2, 3, 8});
}

TEST_CASE("activations, norms, orders and positions have names") {
  for (const Activation activation : kActivations) {
    REQUIRE(value_named("activation", kActivations, to_string(activation)) == activation);
  }
  REQUIRE_THROWS_WITH(value_named("activation", kActivations, "gelu_tan"), ContainsSubstring("gelu_tanh"));
  for (const Positions positions : kPositions) {
    REQUIRE(value_named("positions", kPositions, to_string(positions)) == positions);
  }
  for (const NormKind kind : kNormKinds) REQUIRE(value_named("norm", kNormKinds, to_string(kind)) == kind);
  for (const NormOrder order : kNormOrders) REQUIRE(value_named("norm_order", kNormOrders, to_string(order)) == order);
  REQUIRE_THROWS_WITH(value_named("positions", kPositions, "rotry"),
                      "positions: must be one of learned, sinusoidal, rotary, none; got rotry; the nearest is rotary");
  REQUIRE_THROWS_WITH(value_named("norm", kNormKinds, "batch"), "norm: must be one of layer, rms; got batch");
  REQUIRE_THROWS_WITH(value_named("norm_order", kNormOrders, "before"),
                      ContainsSubstring("norm_order: must be one of pre, post; got before"));
}

TEST_CASE("dropout with p 0 or outside a recording is the identity") {
  const Tensor x = full({4, 4}, DType::float32, 3);
  REQUIRE(same_bits(Dropout{0.5}(x), x));
  Tape tape;
  const Recording on(tape);
  REQUIRE(same_bits(Dropout{0}(x), x));
  REQUIRE_FALSE(same_bits(Dropout{0.5}(x), x));
}
