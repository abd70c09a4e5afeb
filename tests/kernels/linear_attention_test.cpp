// Causal linear attention against the plain quadratic formula, and its guarantees: every chunk size, one token at a
// time and any number of threads give the same result; nothing depends on the future.
#include <cmath>
#include <limits>

#include "autograd/kernels/linear_attention/scan.h"
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/kernels/targets.h"
#include "tests/tensors.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct LinearCase {
  std::int64_t batch = 1, queries = 1, keys = 1, heads = 1, features = 1, head_size = 1;
  LinearAttention options = {};
};

/// y, dq, dk, dv.
using Result = std::array<Tensor, 4>;

Tensor drawn(const Shape& shape, std::uint64_t which, bool positive) {
  const RandomStream stream(which, RandomPurpose::test, 5);
  Tensor x = empty(shape, DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    x.data<double>()[i] = positive ? 0.05 + stream.uniform(index) : stream.normal(index);
  }
  return x;
}

/// q, k, v and dy of a case.
std::array<Tensor, 4> inputs_of(const LinearCase& c) {
  const std::int64_t f = c.heads * c.features, d = c.heads * c.head_size;
  return {drawn({c.batch, c.queries, f}, 1, true), drawn({c.batch, c.keys, f}, 2, true),
          drawn({c.batch, c.keys, d}, 3, false), drawn({c.batch, c.queries, d}, 4, false)};
}

Result run(const std::array<Tensor, 4>& in, const LinearAttention& options, DType dtype = DType::float64) {
  Tape tape;
  Tensor x[3], y;
  {
    const Recording on(tape);
    for (std::size_t i = 0; i < 3; ++i) x[i] = tape.watch(convert(in[i], dtype).detach());
    y = linear_attention(x[0], x[1], x[2], options);
  }
  tape.backward(y, convert(in[3], dtype));
  return {y.detach(), tape.gradient(x[0]), tape.gradient(x[1]), tape.gradient(x[2])};
}

/// y, dq, dk and dv by the plain formula: explicit weights w_ts = q_t·k_s / Σ_s q_t·k_s.
Result reference(const LinearCase& c, const std::array<Tensor, 4>& in) {
  const std::int64_t F = c.features, D = c.head_size, H = c.heads;
  Result out = {zeros(in[3].shape(), DType::float64), zeros(in[0].shape(), DType::float64),
                zeros(in[1].shape(), DType::float64), zeros(in[2].shape(), DType::float64)};
  for (std::int64_t i = 0; i < c.batch * H; ++i) {
    const std::int64_t b = i / H, h = i % H;
    const auto q = [&](std::int64_t t) { return (b * c.queries + t) * H * F + h * F; };
    const auto k = [&](std::int64_t s) { return (b * c.keys + s) * H * F + h * F; };
    const auto v = [&](std::int64_t s) { return (b * c.keys + s) * H * D + h * D; };
    const auto y = [&](std::int64_t t) { return (b * c.queries + t) * H * D + h * D; };
    for (std::int64_t t = 0; t < c.queries; ++t) {
      const std::int64_t seen = c.options.causal ? t + 1 : c.keys;
      std::vector<double> a(static_cast<std::size_t>(seen));
      double sum = 0;
      for (std::int64_t s = 0; s < seen; ++s) {
        double& score = a[static_cast<std::size_t>(s)];
        for (std::int64_t f = 0; f < F; ++f) score += in[0].data<double>()[q(t) + f] * in[1].data<double>()[k(s) + f];
        sum += score;
      }
      const bool floored = c.options.floor > sum;
      if (floored) sum = c.options.floor;
      double mean = 0;  // Σ_c y_c dy_c
      for (std::int64_t s = 0; s < seen; ++s) {
        for (std::int64_t j = 0; j < D; ++j) {
          const double share = a[static_cast<std::size_t>(s)] / sum;
          out[0].data<double>()[y(t) + j] += share * in[2].data<double>()[v(s) + j];
          out[3].data<double>()[v(s) + j] += share * in[3].data<double>()[y(t) + j];
          mean += share * in[2].data<double>()[v(s) + j] * in[3].data<double>()[y(t) + j];
        }
      }
      for (std::int64_t s = 0; s < seen; ++s) {
        double dv = 0;
        for (std::int64_t j = 0; j < D; ++j) dv += in[2].data<double>()[v(s) + j] * in[3].data<double>()[y(t) + j];
        const double ds = (dv - (floored ? 0 : mean)) / sum;
        for (std::int64_t f = 0; f < F; ++f) {
          out[1].data<double>()[q(t) + f] += ds * in[1].data<double>()[k(s) + f];
          out[2].data<double>()[k(s) + f] += ds * in[0].data<double>()[q(t) + f];
        }
      }
    }
  }
  return out;
}

/// The largest difference over the root of the mean square of b, or over `least` if that is larger.
double error(const Tensor& a, const Tensor& b, double least = 1e-3) {
  REQUIRE(a.shape() == b.shape());
  double most = 0, squares = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double difference = std::abs(a.at(i) - b.at(i));
    if (!(difference <= most)) most = difference;
    squares += b.at(i) * b.at(i);
  }
  return most / std::max(std::sqrt(squares / static_cast<double>(a.numel())), least);
}
void require_close(const Result& a, const Result& b, double bound) {
  const char* const names[] = {"y", "dq", "dk", "dv"};
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(names[i]);
    // With one key or one feature the gradients of q and k are 0 by mathematics, so rounding is all there is.
    REQUIRE(error(a[i], b[i], i == 1 || i == 2 ? 0.05 : 1e-3) < bound);
  }
}
bool same(const Result& a, const Result& b) {
  return same_bits(a[0], b[0]) && same_bits(a[1], b[1]) && same_bits(a[2], b[2]) && same_bits(a[3], b[3]);
}

LinearCase drawn_linear_case(std::uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::test, 99);
  const auto pick = [&](std::uint64_t call, std::initializer_list<std::int64_t> from) {
    return from.begin()[stream.below(call, from.size())];
  };
  LinearCase c{.batch = pick(0, {1, 2}),
               .queries = pick(1, {1, 2, 3, 7, 8, 9, 16, 17, 63, 64, 65, 100, 129, 200}),
               .keys = pick(2, {1, 2, 5, 16, 17, 63, 64, 65, 130}),
               .heads = pick(3, {1, 2, 3}),
               .features = pick(4, {1, 2, 3, 8, 15, 16, 17, 33, 64}),
               .head_size = pick(5, {1, 2, 5, 8, 13, 16, 17, 32, 40})};
  c.options = {.n_head = c.heads, .causal = stream.below(6, 3) != 0, .chunk = pick(7, {0, 0, 1, 5, 64, 70, 1000})};
  if (c.options.causal) c.keys = c.queries;
  if (stream.below(8, 4) == 0) c.options.floor = 0.3 * static_cast<double>(c.features * c.keys) * 0.3;
  return c;
}

}  // namespace

TEST_CASE("linear attention and its gradients equal the quadratic formula on every target") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const LinearCase c = drawn_linear_case(seed);
    INFO("seed " << seed << ": " << c.queries << " queries, " << c.keys << " keys, " << c.heads << " heads of "
                 << c.features << " and " << c.head_size << ", chunk " << c.options.chunk << ", floor "
                 << c.options.floor << (c.options.causal ? ", causal" : ""));
    const auto in = inputs_of(c);
    const Result expected = reference(c, in);
    on_every_target([&] {
      require_close(run(in, c.options), expected, 2e-12);
      require_close(run(in, c.options, DType::float32), expected, 5e-4);
    });
  }
}

TEST_CASE("parallel, chunked and recurrent linear attention agree to 1e-12, forward and gradients") {
  for (const std::int64_t tokens : {37, 600, 1100}) {
    LinearCase c{.queries = tokens, .keys = tokens, .heads = 2, .features = 9, .head_size = 12};
    c.options.n_head = 2;
    const auto in = inputs_of(c);
    c.options.chunk = tokens;  // the quadratic form
    const Result parallel = run(in, c.options);
    for (const std::int64_t chunk : {1, 2, 3, 7, 16, 63, 64, 65, 100, 128, 511, 512, 513}) {
      INFO(tokens << " tokens in chunks of " << chunk);
      c.options.chunk = chunk;
      const Result chunked = run(in, c.options);
      for (std::size_t i = 0; i < 4; ++i) REQUIRE(error(chunked[i], parallel[i]) < 1e-12);
    }
  }
}

TEST_CASE("linear attention sums its state in segments of at most 512 tokens or one chunk, on which its bits depend") {
  for (const auto& [chunk, rows] :
       {std::pair{1, 512}, {64, 512}, {100, 500}, {256, 512}, {257, 257}, {512, 512}, {1000, 1000}}) {
    REQUIRE(kernels::segment_rows(chunk) == rows);
  }
}

TEST_CASE("linear attention continued from its sums equals the pass over the whole sequence") {
  const std::int64_t tokens = 700, heads = 2, f = 5, d = 6;
  LinearCase c{.batch = 2, .queries = tokens, .keys = tokens, .heads = heads, .features = f, .head_size = d};
  c.options.n_head = heads;
  const auto in = inputs_of(c);
  const ThreadsScope threads(8);  // more than heads: 700 tokens are two segments
  const Tensor whole = linear_attention(in[0], in[1], in[2], c.options);
  for (const std::int64_t step : {1, 3, 64, 333, 700}) {
    LinearAttentionSums sums{zeros({2, heads, f, d}, DType::float64), zeros({2, heads, f}, DType::float64)};
    for (std::int64_t t = 0; t < tokens; t += step) {
      const std::int64_t end = std::min(t + step, tokens);
      const Tensor y =
          linear_attention(slice(in[0], 1, t, end), slice(in[1], 1, t, end), slice(in[2], 1, t, end), c.options, sums);
      INFO("tokens " << t << " to " << end);
      REQUIRE(error(y, slice(whole, 1, t, end)) < 1e-12);
    }
    double keys = 0;  // the sums are those of all tokens
    for (std::int64_t s = 0; s < tokens; ++s) keys += in[1].at(s * heads * f);
    REQUIRE(sums.keys.at(0) == Approx(keys).epsilon(1e-13));
  }
}

TEST_CASE("no bit of linear attention depends on the number of threads, the batch or the length") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const bool causal : {true, false}) {
      LinearCase c{.batch = 3, .queries = 1300, .keys = 1300, .heads = 1, .features = 7, .head_size = 5};
      c.options.causal = causal;
      const auto in = inputs_of(c);
      const ThreadsScope one(1);
      const Result alone = run(in, c.options, dtype);
      for (const int n : {2, 3, 8}) {
        const ThreadsScope several(n);
        REQUIRE(same(run(in, c.options, dtype), alone));
      }
      const ThreadsScope two(2);
      std::array<Tensor, 4> last;  // the last sequence of the batch, where there are fewer heads than threads
      for (std::size_t i = 0; i < 4; ++i) last[i] = slice(in[i], 0, 2, 3);
      const Result single = run(last, c.options, dtype);
      for (std::size_t i = 0; i < 4; ++i) REQUIRE(same_bits(single[i], slice(alone[i], 0, 2, 3)));
      if (!causal) continue;
      for (const std::int64_t tokens : {1, 50, 512, 1000}) {
        std::array<Tensor, 4> first;
        for (std::size_t i = 0; i < 4; ++i) first[i] = slice(in[i], 1, 0, tokens);
        const Result shorter = run(first, c.options, dtype);
        REQUIRE(same_bits(shorter[0], slice(alone[0], 1, 0, tokens)));
        REQUIRE(same_bits(shorter[1], slice(alone[1], 1, 0, tokens)));
      }
    }
  }
}

TEST_CASE("a row of linear attention depends on no later token, whatever that token is") {
  const std::int64_t tokens = 140, features = 4;
  LinearCase c{.queries = tokens, .keys = tokens, .features = features, .head_size = 3};
  const auto in = inputs_of(c);
  on_every_target([&] {
    const Tensor before = run(in, c.options, DType::float32)[0];
    for (const double value :
         {3.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      for (const std::int64_t t : {0, 1, 5, 63, 64, 70, 139}) {
        std::array<Tensor, 4> changed = in;
        for (std::size_t i = 0; i < 3; ++i) {
          changed[i] = copy_of<double>(in[i]);
          changed[i].data<double>()[t * in[i].shape()[2]] = value;
        }
        const Tensor after = run(changed, c.options, DType::float32)[0];
        INFO("token " << t << " becomes " << value);
        REQUIRE(same_bits(slice(after, 1, 0, t), slice(before, 1, 0, t)));
        for (std::int64_t later = t; later < tokens; ++later) REQUIRE(after.at(later * 3) != before.at(later * 3));
      }
    }
  });
}

TEST_CASE("float32 linear attention stays accurate over 20,000 tokens") {
  LinearCase c{.queries = 20000, .keys = 20000, .features = 8, .head_size = 8};
  const auto in = inputs_of(c);
  const Result narrow = run(in, c.options, DType::float32), wide = run(in, c.options);
  for (std::size_t i = 0; i < 4; ++i) {
    double squares = 0, norm = 0;
    for (std::int64_t j = 0; j < wide[i].numel(); ++j) {
      squares += std::pow(narrow[i].at(j) - wide[i].at(j), 2);
      norm += std::pow(wide[i].at(j), 2);
    }
    CAPTURE(i, std::sqrt(squares / norm));
    REQUIRE(std::sqrt(squares / norm) < 2e-5);
  }
}
