// Attention by content and distance: against PyTorch (tests/fixtures/make_transformer_xl.py), against the [T, S] matrix
// of scores computed with other ops, and against plain attention.
#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/fixture.h"
#include "tests/ops/op_case.h"
#include "tests/tensors.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

// q, k‖v, r, u, v.
using Inputs = std::vector<Tensor>;

Inputs draw_inputs(std::int64_t batch, std::int64_t queries, std::int64_t keys, std::int64_t width) {
  Draw draw(static_cast<std::uint64_t>(1000 * queries + keys));
  return {draw.normals({batch, queries, width}), draw.normals({batch, keys, 2 * width}), draw.normals({keys, width}),
          draw.normals({width}), draw.normals({width})};
}

Inputs converted(const Inputs& inputs, DType dtype) {
  Inputs result;
  for (const Tensor& x : inputs) result.push_back(convert(x, dtype));
  return result;
}

Tensor by_op(const Inputs& x, const RelativeAttention& options) {
  return relative_attention(x[0], x[1], x[2], x[3], x[4], options);
}

// Head h of x, whose last axis holds the columns of all heads from column `at` on.
Tensor head_of(const Tensor& x, std::int64_t at, std::int64_t h, std::int64_t size) {
  return slice(x, -1, at + h * size, at + (h + 1) * size);
}

// Relative attention with a matrix of scores for one sequence: q [T, D], k, v [S, D], r [S, D], u, w [D].
Tensor head_by_scores(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& r, const Tensor& u,
                      const Tensor& w) {
  const std::int64_t queries = q.shape()[0], keys = k.shape()[0];
  Tensor distance = empty({queries, keys}, DType::int32), visible = empty({queries, keys}, DType::int32);
  for (std::int64_t i = 0; i < distance.numel(); ++i) {
    const std::int64_t d = i / keys + keys - queries - i % keys;
    distance.data<std::int32_t>()[i] = static_cast<std::int32_t>(std::max<std::int64_t>(d, 0));
    visible.data<std::int32_t>()[i] = d >= 0 ? 1 : 0;
  }
  const Tensor content = matmul(add(q, u), k, false, true);
  const Tensor position = gather(matmul(add(q, w), r, false, true), 1, distance);
  const Tensor scores = scale(add(content, position), 1 / std::sqrt(static_cast<double>(q.shape()[1])));
  return matmul(softmax(where(visible, scores, full({1}, q.dtype(), -1e30))), v);
}

Tensor by_scores(const Inputs& x, std::int64_t n_head) {
  const std::int64_t width = x[0].shape()[2], size = width / n_head;
  std::vector<Tensor> sequences;
  for (std::int64_t b = 0; b < x[0].shape()[0]; ++b) {
    const auto sequence = [&](const Tensor& t) { return reshape(slice(t, 0, b, b + 1), {t.shape()[1], t.shape()[2]}); };
    const Tensor q = sequence(x[0]), kv = sequence(x[1]);
    std::vector<Tensor> heads;
    for (std::int64_t h = 0; h < n_head; ++h) {
      heads.push_back(head_by_scores(head_of(q, 0, h, size), head_of(kv, 0, h, size), head_of(kv, width, h, size),
                                     head_of(x[2], 0, h, size), head_of(x[3], 0, h, size), head_of(x[4], 0, h, size)));
    }
    sequences.push_back(concat(heads, 1));
  }
  return stack(sequences);
}

// y and the gradients of all inputs for the cotangent dy.
template <class Op>
std::vector<Tensor> run(const Inputs& inputs, const Tensor& dy, const Op& op) {
  Tape tape;
  Inputs watched;
  const Tensor y = [&] {
    const Recording on(tape, {.seed = 7});
    for (const Tensor& x : inputs) watched.push_back(tape.watch(x));
    return op(watched);
  }();
  tape.backward(y, dy);
  std::vector<Tensor> results = {y.detach()};
  for (const Tensor& x : watched) results.push_back(tape.gradient(x));
  return results;
}

std::vector<Tensor> run(const Inputs& inputs, const Tensor& dy, const RelativeAttention& options) {
  return run(inputs, dy, [&](const Inputs& x) { return by_op(x, options); });
}

void require_close(const Tensor& found, const Tensor& expected, double bound) {
  REQUIRE(found.shape() == expected.shape());
  const double error = relative_error(convert(found, DType::float64), convert(expected, DType::float64));
  REQUIRE(error <= bound);
}

struct Size {
  std::int64_t batch, queries, keys, heads, head_size;
};

}  // namespace

TEST_CASE("relative attention: values and all gradients are those of PyTorch in float64") {
  const Fixture f = read_fixture("relative_attention");
  for (const auto& [name, heads] : {std::pair{std::string("plain."), 2}, {std::string("memory."), 3}}) {
    INFO(name);
    const Inputs x = {f[name + "q"], concat({f[name + "k"], f[name + "v"]}, 2), f[name + "r"], f[name + "u"],
                      f[name + "w"]};
    const auto found = run(x, f[name + "dy"], {.n_head = heads});
    const Inputs expected = {f[name + "y"],  f[name + "dq"], concat({f[name + "dk"], f[name + "dv"]}, 2),
                             f[name + "dr"], f[name + "du"], f[name + "dw"]};
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("result " << i);
      REQUIRE(found[i].shape() == expected[i].shape());
      for (std::int64_t e = 0; e < found[i].numel(); ++e) {
        REQUIRE(std::abs(found[i].at(e) - expected[i].at(e)) <= 1e-11);
      }
    }
  }
}

// Sizes around tiles of 128 and 64 queries and blocks of 64 keys, and heads that are cut into pieces.
TEST_CASE("relative attention: the same as the matrix of scores, at every size, in float64 and float32") {
  for (const Size& s : {Size{2, 1, 1, 1, 4},
                        {2, 1, 90, 2, 3},
                        {2, 7, 7, 2, 5},
                        {1, 64, 64, 1, 16},
                        {2, 65, 129, 2, 3},
                        {1, 130, 130, 1, 17},
                        {1, 131, 200, 2, 8},
                        {1, 70, 600, 1, 5},
                        {1, 600, 600, 1, 4},
                        {1, 530, 700, 2, 3}}) {
    INFO("batch " << s.batch << ", " << s.queries << " queries, " << s.keys << " keys, " << s.heads << " heads of "
                  << s.head_size);
    const Inputs x = draw_inputs(s.batch, s.queries, s.keys, s.heads * s.head_size);
    Draw draw(5);
    const Tensor dy = draw.normals(x[0].shape());
    const auto expected = run(x, dy, [&](const Inputs& in) { return by_scores(in, s.heads); });
    const auto found = run(x, dy, {.n_head = s.heads});
    const auto single =
        run(converted(x, DType::float32), convert(dy, DType::float32), RelativeAttention{.n_head = s.heads});
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("result " << i);
      if (s.keys == 1 && (i == 1 || i >= 3)) {  // one key has all the weight: nothing depends on its score
        for (std::int64_t e = 0; e < found[i].numel(); ++e) REQUIRE(std::abs(found[i].at(e)) == 0);
        continue;
      }
      require_close(found[i], expected[i], 1e-12);
      require_close(single[i], expected[i], 2e-5);
    }
  }
}

TEST_CASE("relative attention: no bit depends on the number of threads") {
  for (const Size& s : {Size{2, 70, 150, 3, 5}, {1, 530, 700, 2, 3}, {1, 1200, 1200, 1, 16}, {40, 33, 70, 1, 4}}) {
    const Inputs x = converted(draw_inputs(s.batch, s.queries, s.keys, s.heads * s.head_size), DType::float32);
    Draw draw(5);
    const Tensor dy = convert(draw.normals(x[0].shape()), DType::float32);
    std::vector<Tensor> first;
    for (const int count : {1, 2, 3, 7}) {
      const ThreadsScope scope(count);
      const auto found = run(x, dy, {.n_head = s.heads, .dropout = 0.1});
      if (first.empty()) first = found;
      for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(same_bits(found[i], first[i]));
    }
  }
}

TEST_CASE("relative attention: a query alone, with all keys up to its own, has the bits of its row") {
  const std::int64_t tokens = 150, memory = 40, width = 12;
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Inputs x = converted(draw_inputs(2, tokens, tokens + memory, width), dtype);
    const Tensor all = by_op(x, {.n_head = 2});
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t keys = memory + t + 1;
      const Tensor alone = by_op({slice(x[0], 1, t, t + 1), x[1], x[2], x[3], x[4]}, {.n_head = 2, .keys = keys});
      REQUIRE(same_bits(alone, slice(all, 1, t, t + 1)));
    }
  }
}

TEST_CASE("relative attention: without a position term it is causal attention of q + u, bit for bit") {
  for (const std::int64_t keys : {50, 80, 200}) {
    Inputs x = draw_inputs(2, 50, keys, 12);
    x[2] = zeros(x[2].shape(), DType::float64);
    const Tensor plain = attention(add(x[0], x[3]), x[1], {.n_head = 3, .causal = true});
    REQUIRE(same_bits(by_op(x, {.n_head = 3}), plain));
  }
}

TEST_CASE("relative attention: distances alone move the output with the tokens") {
  // With keys that are all equal, a query's weights are a function of the distances: output t of values that are
  // one-hot at t − 3 is the weight of distance 3, which is the same for every t that sees as many keys.
  const std::int64_t tokens = 9, width = 4;
  Inputs x = draw_inputs(1, tokens, 3 * tokens, width);
  x[0] = zeros(x[0].shape(), DType::float64);
  for (std::int64_t d = tokens; d < 3 * tokens; ++d) {  // weights of later distances are 0
    for (std::int64_t c = 0; c < width; ++c) x[2].data<double>()[d * width + c] = -1e4 * x[4].at(c);
  }
  double* const kv = x[1].data<double>();
  for (std::int64_t s = 0; s < 3 * tokens; ++s) {
    for (std::int64_t c = 0; c < 2 * width; ++c) kv[s * 2 * width + c] = c < width ? 1 : static_cast<double>(s);
  }
  const Tensor y = by_op(x, {.n_head = 1});
  for (std::int64_t t = 0; t < tokens; ++t) {
    REQUIRE(y.at(t * width) - static_cast<double>(t) == Approx(y.at(0)).margin(1e-12));
  }
}

TEST_CASE("relative attention: NaN in a distance, a key or a query stays with those that meet it") {
  const std::int64_t tokens = 70, keys = 140, width = 3, far = 100, key = 90, query = 20;
  const Inputs clean = draw_inputs(1, tokens, keys, width);
  Draw draw(5);
  const Tensor dy = draw.normals(clean[0].shape());
  const auto expected = run(clean, dy, {.n_head = 1});
  const auto damaged = [&](std::size_t input, std::int64_t row) {
    Inputs x = clean;
    x[input] = copy_of<double>(clean[input]);
    const std::int64_t columns = x[input].shape()[-1];
    std::fill_n(x[input].data<double>() + row * columns, columns, kNaN);
    return run(x, dy, {.n_head = 1});
  };
  const auto distance = damaged(2, far), at_key = damaged(1, key), at_query = damaged(0, query);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const std::int64_t last = t + keys - tokens;  // the distance of the first key, and the position of its own
    for (std::int64_t c = t * width; c < (t + 1) * width; ++c) {
      REQUIRE(std::isnan(distance[0].at(c)) == (last >= far));
      REQUIRE(std::isnan(at_key[0].at(c)) == (last >= key));
      REQUIRE(std::isnan(at_query[0].at(c)) == (t == query));
      REQUIRE(std::isnan(distance[1].at(c)) == (last >= far));
      REQUIRE(std::isnan(at_key[1].at(c)) == (last >= key));
      if (t != query) REQUIRE(at_query[1].at(c) == Approx(expected[1].at(c)).margin(1e-12));
      if (last < far) REQUIRE(distance[1].at(c) == Approx(expected[1].at(c)).margin(1e-12));
    }
  }
  for (std::int64_t d = 0; d < keys; ++d) {  // the query meets distances up to that of the first key
    for (std::int64_t c = d * width; c < (d + 1) * width; ++c) {
      REQUIRE(std::isnan(at_query[3].at(c)) == (d <= query + keys - tokens));
    }
  }
}

TEST_CASE("relative attention: dropout drops the given fraction of the weights, only in a recording") {
  // All scores are equal and all values 1: an output is the fraction of its weights that were kept, divided by 0.75.
  const std::int64_t tokens = 200;
  const Tensor zero = zeros({4}, DType::float64), ones = full({1, tokens, 8}, DType::float64, 1);
  const Inputs x = {zeros({1, 1, 4}, DType::float64), ones, zeros({tokens, 4}, DType::float64), zero, zero};
  const RelativeAttention options{.n_head = 4, .dropout = 0.25};
  const Tensor plain = by_op(x, options);
  Tape tape;
  const Recording on(tape, {.seed = 3});
  const Tensor y = by_op(x, options);
  for (std::int64_t i = 0; i < 4; ++i) {
    REQUIRE(plain.at(i) == Approx(1));
    REQUIRE(y.at(i) * 0.75 > 0.6);
    REQUIRE(y.at(i) * 0.75 < 0.9);
    REQUIRE(y.at(i) != Approx(y.at((i + 1) % 4)));  // every head has masks of its own
  }
}

TEST_CASE("relative attention: the messages for inputs that it rejects") {
  const Inputs x = draw_inputs(2, 3, 5, 4);
  const auto message = [&](std::size_t input, const Tensor& value, const RelativeAttention& options) {
    Inputs changed = x;
    changed[input] = value;
    return refusal([&] { by_op(changed, options); });
  };
  const RelativeAttention two{.n_head = 2};
  REQUIRE_THAT(message(1, zeros({2, 2, 8}, DType::float64), two),
               ContainsSubstring("at least as many keys as queries"));
  REQUIRE_THAT(message(1, zeros({2, 5, 4}, DType::float64), two), ContainsSubstring("packed k and v [B, S, 2C]; got"));
  REQUIRE_THAT(message(1, zeros({1, 5, 8}, DType::float64), two), ContainsSubstring("got [2, 3, 4] and [1, 5, 8]"));
  REQUIRE_THAT(message(1, zeros({5, 8}, DType::float64), two), ContainsSubstring("got [2, 3, 4] and [5, 8]"));
  REQUIRE_THAT(message(0, zeros({3, 4}, DType::float64), two), ContainsSubstring("got [3, 4] and [2, 5, 8]"));
  REQUIRE_THAT(message(2, zeros({4, 4}, DType::float64), two), ContainsSubstring("r must be [at least 5, 4]"));
  REQUIRE_THAT(message(2, zeros({5, 3}, DType::float64), two), ContainsSubstring("r must be [at least 5, 4]"));
  REQUIRE_THAT(message(2, zeros({20}, DType::float64), two), ContainsSubstring("for each distance; got [20]"));
  REQUIRE_THAT(message(3, zeros({2}, DType::float64), two), ContainsSubstring("u and v must be [4]"));
  REQUIRE_THAT(message(4, zeros({2}, DType::float64), two), ContainsSubstring("the width of q; got [4] and [2]"));
  REQUIRE_THAT(message(4, zeros({4}, DType::float32), two), ContainsSubstring("same type"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 3}), ContainsSubstring("divide the width 4; got 3"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 0}), ContainsSubstring("divide the width 4; got 0"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 2, .keys = 2}), ContainsSubstring("got 2"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 2, .keys = -1}), ContainsSubstring("the rows of k‖v; got -1"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 2, .keys = 6}), ContainsSubstring("at most 5"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 2, .dropout = 1}), ContainsSubstring("dropout must be in [0, 1)"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 2, .dropout = -0.5}), ContainsSubstring("in [0, 1); got -0.5"));
  REQUIRE_THAT(message(0, x[0], {.n_head = 2, .scale = kNaN}), ContainsSubstring("scale must be finite"));
}
