// short_conv against plain loops, in pieces as in generation, and the inputs that it refuses.
#include <cmath>

#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/kernels/targets.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

// y_t = Σ_k weight_k · x_{t+ahead−k}, in float64.
std::vector<double> plain_conv(const Tensor& x, const Tensor& weight, std::int64_t ahead) {
  const std::int64_t tokens = x.shape()[1], width = x.shape()[2], taps = weight.shape()[0];
  std::vector<double> y;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const std::int64_t token = i / width % tokens + ahead - k;
      if (token >= 0 && token < tokens) sum += weight.at(k * width + i % width) * x.at(i + (ahead - k) * width);
    }
    y.push_back(sum);
  }
  return y;
}

}  // namespace

TEST_CASE("short_conv is the sum over the tokens of its own sequence before and after each, on every target") {
  on_every_target([] {
    for (const DType dtype : {DType::float32, DType::float64}) {
      Draw draw(1);
      for (const auto& [tokens, taps] :
           {std::pair<std::int64_t, std::int64_t>{1, 3}, {7, 1}, {7, 4}, {40, 5}, {3, 9}}) {
        const Tensor x = convert(draw.normals({3, tokens, 21}), dtype), w = convert(draw.normals({taps, 21}), dtype);
        for (std::int64_t ahead = 0; ahead < taps; ++ahead) {
          const Tensor y = short_conv(x, w, ahead);
          const std::vector<double> expected = plain_conv(x, w, ahead);
          for (std::int64_t i = 0; i < y.numel(); ++i) {
            const double error = std::abs(y.at(i) - expected[static_cast<std::size_t>(i)]);
            REQUIRE(error < (dtype == DType::float32 ? 1e-5 : 1e-14));
          }
        }
      }
    }
  });
}

TEST_CASE("short_conv in pieces has the bits of the whole, if each piece is given the tokens before it") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Draw draw(2);
    const Tensor x = convert(draw.normals({2, 11, 19}), dtype), w = convert(draw.normals({4, 19}), dtype);
    const Tensor whole = short_conv(x, w);
    for (const std::int64_t piece : {1, 2, 5, 11}) {
      for (std::int64_t begin = 0; begin < 11; begin += piece) {
        const std::int64_t end = std::min<std::int64_t>(11, begin + piece), known = std::min<std::int64_t>(3, begin);
        const Tensor before = begin > 0 ? slice(x, 1, begin - known, begin) : Tensor();
        const Tensor y = short_conv(slice(x, 1, begin, end), w, 0, before);
        INFO("tokens " << begin << " to " << end);
        REQUIRE(same_bits(y, slice(whole, 1, begin, end)));
      }
    }
  }
}

TEST_CASE("short_conv: the messages for inputs that it refuses") {
  const Tensor x = zeros({2, 3, 4}, DType::float32), w = zeros({3, 4}, DType::float32);
  REQUIRE_THAT(refusal([&] {
                 short_conv(zeros({3, 4}, DType::float32), w);
               }),
               ContainsSubstring("x must be [B, T, C] and the weight [K, C] with K >= 1; got [3, 4] and [3, 4]"));
  REQUIRE_THAT(refusal([&] { short_conv(x, zeros({3, 5}, DType::float32)); }), ContainsSubstring("[3, 5]"));
  REQUIRE_THAT(refusal([&] { short_conv(x, zeros({0, 4}, DType::float32)); }), ContainsSubstring("[0, 4]"));
  REQUIRE_THAT(refusal([&] {
                 short_conv(x, w, 0, zeros({2, 3, 4}, DType::float32));
               }),
               ContainsSubstring("must be [B, m, C] with m < K = 3; got [2, 3, 4]"));
  REQUIRE_THAT(refusal([&] {
                 short_conv(x, w, 0, zeros({1, 2, 4}, DType::float32));
               }),
               ContainsSubstring("got [1, 2, 4]"));
  REQUIRE_THAT(refusal([&] {
                 short_conv(x, w, 0, zeros({2, 2, 5}, DType::float32));
               }),
               ContainsSubstring("got [2, 2, 5]"));
  REQUIRE_THAT(refusal([&] { short_conv(x, zeros({12}, DType::float32)); }),
               ContainsSubstring("got [2, 3, 4] and [12]"));
  for (const std::int64_t ahead : {-1, 3}) {
    REQUIRE_THAT(refusal([&] { short_conv(x, w, ahead); }),
                 ContainsSubstring("ahead must be at least 0 and below K = 3"));
  }
  REQUIRE_THAT(refusal([&] {
                 short_conv(x, w, 1, zeros({2, 2, 4}, DType::float32));
               }),
               ContainsSubstring("reads whole sequences; got 1 ahead"));
  REQUIRE_THAT(refusal([&] { short_conv(x, convert(w, DType::float64)); }), ContainsSubstring("float32 and float64"));
  Tape tape;
  const Recording on(tape);
  REQUIRE_THAT(refusal([&] {
                 short_conv(x, w, 0, zeros({2, 1, 4}, DType::float32));
               }),
               ContainsSubstring("tokens before the first one have no gradient; end the Recording"));
}
