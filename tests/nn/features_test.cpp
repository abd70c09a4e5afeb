// Feature maps of linear attention: PyTorch's values and gradients, how fast random features approach softmax
// attention, and that landmarks of trained keys do so faster.
#include "nn/features.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "autograd/tape.h"
#include "nn/models/gpt.h"
#include "optim/adam.h"
#include "tests/catch.h"
#include "tests/fixture.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

using Map = std::function<Tensor(const Tensor&)>;

/// A function of each head of x [B, T, C].
Tensor by_head(const Tensor& x, std::int64_t n_head, const Map& map) {
  const Shape s = x.shape();
  const Tensor y = map(reshape(x, {s[0] * s[1] * n_head, s[2] / n_head}));
  return reshape(y, {s[0], s[1], n_head * y.shape()[1]});
}

void require_close(const char* what, const Tensor& a, const Tensor& b, double bound) {
  REQUIRE(a.shape() == b.shape());
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    INFO(what << " element " << i << ": " << a.at(i) << " against " << b.at(i));
    REQUIRE(std::abs(a.at(i) - b.at(i)) <= bound * std::max(1.0, std::abs(b.at(i))));
  }
}

/// Compares linear attention of features of q and k with a case of the fixture, values and gradients.
void require_fixture(const Fixture& f, const std::string& name, std::int64_t n_head, bool causal, const Map& of_query,
                     const Map& of_key) {
  INFO("case " << name);
  Tape tape;
  Tensor q, k, v, y;
  {
    const Recording on(tape);
    q = tape.watch(f[name + ".q"]);
    k = tape.watch(f[name + ".k"]);
    v = tape.watch(f[name + ".v"]);
    y = linear_attention(by_head(q, n_head, of_query), by_head(k, n_head, of_key), v,
                         {.n_head = n_head, .causal = causal});
  }
  tape.backward(y, f[name + ".dy"]);
  require_close("y", y, f[name + ".y"], 1e-11);
  require_close("dq", tape.gradient(q), f[name + ".dq"], 1e-11);
  require_close("dk", tape.gradient(k), f[name + ".dk"], 1e-11);
  require_close("dv", tape.gradient(v), f[name + ".dv"], 1e-11);
}

Tensor normals(std::int64_t rows, std::int64_t cols, double std, std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test, 3);
  Tensor x = empty({rows, cols}, DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = std * stream.normal(static_cast<std::uint64_t>(i));
  return x;
}

/// Attention weights [T, S] from unnormalised ones.
Tensor normalized(const Tensor& a) { return div(a, sum(a, {-1}, true)); }
Tensor exact_weights(const Tensor& q, const Tensor& k) { return softmax(matmul(q, k, false, true)); }
Tensor feature_weights(const Tensor& of_q, const Tensor& of_k) { return normalized(matmul(of_q, of_k, false, true)); }

double frobenius(const Tensor& x) { return std::sqrt(sum(mul(x, x)).item()); }
/// ‖a − b‖ / ‖b‖.
double relative(const Tensor& a, const Tensor& b) { return frobenius(sub(a, b)) / frobenius(b); }

/// The root mean square over draws of the error of random attention weights.
double random_error(const Tensor& q, const Tensor& k, std::int64_t m, bool orthogonal, int draws) {
  double squares = 0;
  const Tensor exact = exact_weights(q, k);
  for (int draw = 0; draw < draws; ++draw) {
    const RandomStream stream(static_cast<std::uint64_t>(draw), RandomPurpose::test, static_cast<std::uint64_t>(m));
    const Tensor w = random_projection(stream, m, q.shape()[1], orthogonal);
    squares += std::pow(relative(feature_weights(stable_random_features(q, w), random_features(k, w)), exact), 2);
  }
  return std::sqrt(squares / draws);
}
double nystrom_error(const Tensor& q, const Tensor& k, std::int64_t m) {
  const Tensor landmarks = choose_landmarks(k, m), root = nystrom_root(landmarks);
  return relative(feature_weights(stable_nystrom_features(q, landmarks, root), nystrom_features(k, landmarks, root)),
                  exact_weights(q, k));
}

/// A byte-level GPT of two layers, two heads of 16 columns, after 150 steps on a text.
struct Trained {
  Trained()
      : store(DType::float32),
        gpt(Scope(store), {.n_layer = 2, .n_head = 2, .n_embd = 32, .block_size = 64, .vocab_size = 256}) {
    store.seal(3);
    std::ifstream file(std::string(MAKI_SOURCE_DIR) + "/data/builtin/stories_en.txt", std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
    Adam adam(store, {});
    Tape tape;
    for (std::uint64_t step = 0; step < 150; ++step) {
      const Tensor ids = bytes(step, 0), targets = bytes(step, 1);
      const Tensor loss = [&] {
        const Recording on(tape);
        return gpt.loss(ids, targets);
      }();
      tape.backward(loss);
      adam.step(3e-3);
      if (step == 0) first_loss = loss.item();
      last_loss = loss.item();
    }
  }
  /// Bytes of the text [8, 64].
  Tensor bytes(std::uint64_t step, std::size_t shift) const {
    const RandomStream stream(step, RandomPurpose::test, 9);
    Tensor ids = empty({8, 64}, DType::int32);
    for (std::size_t i = 0; i < 512; ++i) {
      const std::size_t begin = stream.below(i / 64, text.size() - 66);
      ids.data<std::int32_t>()[i] = static_cast<unsigned char>(text[begin + i % 64 + shift]);
    }
    return ids;
  }
  /// Queries and keys of a head of a layer, scaled by D^(−1/4): [512, 16], float64.
  std::pair<Tensor, Tensor> queries_and_keys(std::size_t layer, std::int64_t head) const {
    Tensor x = add(gpt.wte(bytes(1000, 0)), slice(gpt.input.wpe->weight, 0, 0, 64));
    for (std::size_t i = 0; i < layer; ++i) x = gpt.h[i](x);
    const Tensor qkv = convert(reshape(gpt.h[layer].attn.c_attn(gpt.h[layer].ln_1(x)), {512, 96}), DType::float64);
    const auto part = [&](std::int64_t at) { return scale(slice(qkv, 1, at + head * 16, at + head * 16 + 16), 0.5); };
    return {part(0), part(32)};
  }

  ParameterStore store;
  Gpt gpt;
  std::string text;
  double first_loss = 0, last_loss = 0;
};

}  // namespace

TEST_CASE("linear attention equals PyTorch's plain formula, values and gradients") {
  const Fixture f = read_fixture("linear");
  require_fixture(f, "causal", 2, true, elu_plus_one, elu_plus_one);
  require_fixture(f, "full", 3, false, elu_plus_one, elu_plus_one);
  const Tensor w = f["random.w"];
  const Map features = [&](const Tensor& x) { return random_features(x, w); };
  require_fixture(f, "random", 2, true, features, features);
  // The factor that stabilises a query's features changes neither values nor gradients.
  require_fixture(
      f, "random", 2, true, [&](const Tensor& x) { return stable_random_features(x, w); }, features);
}

TEST_CASE("the error of random features falls as one over the root of their number") {
  // Queries and keys of length 0.6. The variance of a feature grows as exp(|q + k|²): at length 1 its tail is so heavy
  // that few features show less than their share of it, and the slope over this range is only −0.42.
  const Tensor q = normals(48, 16, 0.15, 1), k = normals(48, 16, 0.15, 2);
  double x_sum = 0, y_sum = 0, xx = 0, xy = 0, n = 0;
  std::ostringstream figures;
  for (std::int64_t m = 16; m <= 4096; m *= 2) {
    const double error = random_error(q, k, m, false, m <= 512 ? 64 : 24), x = std::log(static_cast<double>(m));
    figures << m << ": " << error << "\n";
    x_sum += x;
    y_sum += std::log(error);
    xx += x * x;
    xy += x * std::log(error);
    n += 1;
  }
  const double slope = (n * xy - x_sum * y_sum) / (n * xx - x_sum * x_sum);
  INFO(figures.str() << "slope " << slope);
  REQUIRE(slope > -0.6);
  REQUIRE(slope < -0.4);
}

TEST_CASE("orthogonal random features have a smaller error than independent ones") {
  const Tensor q = normals(48, 16, 0.4, 1), k = normals(48, 16, 0.4, 2);
  for (const std::int64_t m : {16, 64}) {
    const double orthogonal = random_error(q, k, m, true, 200), independent = random_error(q, k, m, false, 200);
    INFO(m << " features: " << orthogonal << " and " << independent);
    REQUIRE(orthogonal < independent);
  }
  const Tensor w = random_projection(RandomStream(1, RandomPurpose::test), 40, 16, true);
  double squares = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t j = 0; j < 40; ++j) {
      double dot = 0;
      for (std::int64_t c = 0; c < 16; ++c) dot += w.at(i * 16 + c) * w.at(j * 16 + c);
      if (i == j) squares += dot;
      if (i != j && i / 16 == j / 16) REQUIRE(std::abs(dot) < 1e-12);
    }
  }
  REQUIRE(squares == Approx(40 * 16).epsilon(0.15));  // rows keep the lengths of normal vectors
}

TEST_CASE("with the keys of a trained model, Nystrom features have a smaller error than random ones of the same size") {
  const Trained trained;
  REQUIRE(trained.last_loss < 0.6 * trained.first_loss);
  for (const std::size_t layer : {0U, 1U}) {
    for (const std::int64_t head : {0, 1}) {
      const auto [q, k] = trained.queries_and_keys(layer, head);
      for (const std::int64_t m : {8, 16, 32, 64, 128}) {
        const double nystrom = nystrom_error(q, k, m), random = random_error(q, k, m, true, 5);
        INFO("layer " << layer << ", head " << head << ", " << m << " features: " << nystrom << " and " << random);
        REQUIRE(nystrom < random);
      }
    }
  }
}

TEST_CASE("Nystrom features are exact where a query or a key is a landmark") {
  const Tensor landmarks = normals(12, 6, 0.7, 5), root = nystrom_root(landmarks), x = normals(9, 6, 0.7, 6);
  const Tensor product =
      matmul(nystrom_features(x, landmarks, root), nystrom_features(landmarks, landmarks, root), false, true);
  const Tensor exact = exp(matmul(x, landmarks, false, true));
  for (std::int64_t i = 0; i < exact.numel(); ++i) REQUIRE(product.at(i) == Approx(exact.at(i)).epsilon(1e-9));
}

TEST_CASE("the inverse square root of a matrix, and of one without full rank") {
  const std::int64_t n = 20;
  const Tensor b = normals(n, n, 1, 7), a = matmul(b, b, false, true), root = inverse_square_root(a, 1e-14);
  const Tensor one = matmul(matmul(root, a), root);
  for (std::int64_t i = 0; i < n * n; ++i) REQUIRE(one.at(i) == Approx(i / n == i % n).margin(1e-8));
  const Tensor thin = normals(n, 3, 1, 8), flat = matmul(thin, thin, false, true);
  const Tensor part = inverse_square_root(flat, 1e-10);  // of rank 3: root · flat · root is a projection of trace 3
  double trace = 0;
  const Tensor projection = matmul(matmul(part, flat), part);
  for (std::int64_t i = 0; i < n; ++i) trace += projection.at(i * n + i);
  REQUIRE(trace == Approx(3).epsilon(1e-9));
  REQUIRE_THROWS_WITH(inverse_square_root(thin, 0), ContainsSubstring("must be square and float64; got [20, 3]"));
  REQUIRE_THROWS_WITH(inverse_square_root(convert(a, DType::float32), 0), ContainsSubstring("got [20, 20]"));
}

TEST_CASE("landmarks are chosen among the keys, and every number of them is") {
  const Tensor keys = normals(30, 4, 1, 9);
  const Tensor all = choose_landmarks(keys, 30);
  for (std::int64_t i = 0; i < keys.numel(); ++i) REQUIRE(all.at(i) == keys.at(i));
  double before = 1e300;
  for (const std::int64_t m : {1, 3, 10, 30}) {
    const Tensor c = choose_landmarks(keys, m);
    double error = 0;  // the sum of squared distances to the nearest landmark
    for (std::int64_t row = 0; row < 30; ++row) {
      double least = 1e300;
      for (std::int64_t i = 0; i < m; ++i) {
        double distance = 0;
        for (std::int64_t j = 0; j < 4; ++j) distance += std::pow(keys.at(row * 4 + j) - c.at(i * 4 + j), 2);
        least = std::min(least, distance);
      }
      error += least;
    }
    REQUIRE(error < before);
    before = error;
  }
  REQUIRE_THROWS_WITH(choose_landmarks(keys, 31), ContainsSubstring("got [30, 4] and 31"));
  REQUIRE_THROWS_WITH(choose_landmarks(keys, 0), ContainsSubstring("got [30, 4] and 0"));
  // A landmark that is nearest to no key, because others equal it, stays the key that it began as.
  const Tensor equal = choose_landmarks(full({6, 3}, DType::float64, 0.5), 4);
  for (std::int64_t i = 0; i < equal.numel(); ++i) REQUIRE(equal.at(i) == 0.5);
}

TEST_CASE("attention is named softmax, elu, random:M or nystrom:M") {
  for (const char* text : {"softmax", "elu", "random:1", "random:65536", "nystrom:32", "nystrom:1024"}) {
    REQUIRE(to_string(parse_attention(text)) == text);
  }
  REQUIRE(parse_attention("random:64") == AttentionForm{AttentionForm::Kind::random, 64});
  for (const char* text : {"", "random", "random:", "random:0", "random:-3", "random:65537", "nystrom:1025", "elu:3",
                           "random:6x", "random:064", "rand:64", "nystrom:99999999999999999999"}) {
    INFO(text);
    REQUIRE_THROWS_WITH(parse_attention(text), ContainsSubstring("attention: "));
  }
}

TEST_CASE("random projections are those of the seed of the store, also if an earlier seal has failed") {
  const auto projections = [](ParameterStore& store) -> Parameter& {
    const FeatureMap map(Scope(store), parse_attention("random:4"), 2, 4);
    return store.find("projection");
  };
  ParameterStore fresh, failed;
  projections(fresh);
  fresh.seal(2);
  Parameter& again = projections(failed);
  bool fails = true;
  failed.add("other", {1}, [&](const RandomStream&, std::uint64_t) {
    check(!fails, "fails once");
    return 0.0;
  });
  REQUIRE_THROWS_WITH(failed.seal(1), "fails once");
  fails = false;
  failed.seal(2);
  REQUIRE(same_bits(again.value(), fresh.find("projection").value()));
}
