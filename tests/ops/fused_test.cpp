// Fused ops against the ops that they combine: the same bits, also where the logits are too large to be kept.
#include <functional>
#include <utility>

#include "autograd/core/storage.h"
#include "autograd/ops.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Requires equal bits of all gradients. The output may differ by `error`, relative to its norm.
void require_same_bits(const Case& fused, const Case& composed, DType dtype, double error = 0) {
  BoundCase one(fused, dtype), two(composed, dtype);
  const Evaluation a = evaluate(one), b = evaluate(two);
  REQUIRE(a.gradients.size() == b.gradients.size());
  REQUIRE(relative_error(a.output, b.output) <= error);
  for (std::size_t i = 0; i < a.gradients.size(); ++i) REQUIRE(same_bits(a.gradients[i], b.gradients[i]));
}

}  // namespace

TEST_CASE("linear_gelu has the bits of gelu after linear") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const Gelu form : {Gelu::erf, Gelu::tanh}) {
      Draw draw(1);
      const std::vector<Tensor> inputs = {draw.normals({130, 70}), draw.normals({700, 70}), draw.normals({700})};
      require_same_bits({inputs, [=](const auto& v) { return linear_gelu(v[0], v[1], v[2], form); }},
                        {inputs, [=](const auto& v) { return gelu(linear(v[0], v[1], v[2]), form); }}, dtype);
    }
  }
}

TEST_CASE("gelu_feed_forward has the bits of its two layers, also where it stores rounded numbers") {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const ProductPrecision scope(precision);
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const Gelu form : {Gelu::erf, Gelu::tanh}) {
        // 1,600 columns are more than a product of a rounded result may have steps (kMaxRoundedResultDepth).
        for (const std::int64_t width : {70, 1600}) {
          Draw draw(1);
          const std::vector<Tensor> inputs = {draw.normals({130, width}, 0, 0.2), draw.normals({300, width}, 0, 0.2),
                                              draw.normals({300}), draw.normals({90, 300}), draw.normals({90})};
          INFO(to_string(precision) << " " << to_string(dtype) << " width " << width);
          require_same_bits(
              {inputs, [=](const auto& v) { return gelu_feed_forward(v[0], v[1], v[2], v[3], v[4], form); }},
              {inputs, [=](const auto& v) { return linear(linear_gelu(v[0], v[1], v[2], form), v[3], v[4]); }}, dtype);
        }
      }
    }
  }
}

TEST_CASE("gelu_feed_forward computes only the gradients that are wanted, and refuses shapes that do not fit") {
  Draw draw(1);
  const Tensor x = draw.normals({5, 7}), up = draw.normals({11, 7}), down = draw.normals({3, 11});
  for (int wanted = 0; wanted < 3; ++wanted) {
    Tape tape;
    Tensor watched;
    const Tensor y = [&] {
      const Recording on(tape);
      watched = tape.watch(wanted == 0 ? x : wanted == 1 ? up : down);
      return gelu_feed_forward(wanted == 0 ? watched : x, wanted == 1 ? watched : up, {}, wanted == 2 ? watched : down,
                               {});
    }();
    tape.backward(y, full(y.shape(), DType::float64, 1));
    REQUIRE(tape.gradient(watched).shape() == watched.shape());
    REQUIRE(tape.gradient(watched).at(0) != 0);
  }
  REQUIRE_THAT(refusal([&] { gelu_feed_forward(x, down, {}, up, {}); }),
               ContainsSubstring("gelu_feed_forward: up must be [out, 7]; got [3, 11]"));
  REQUIRE_THAT(refusal([&] { gelu_feed_forward(x, up, {}, up, {}); }),
               ContainsSubstring("gelu_feed_forward: down must be [out, 11]; got [11, 7]"));
  REQUIRE_THAT(refusal([&] { gelu_feed_forward(x, up, draw.normals({3}), down, {}); }),
               ContainsSubstring("the bias of up must be [11]; got [3]"));
  REQUIRE_THAT(refusal([&] { gelu_feed_forward(x, up, {}, convert(down, DType::float32), {}); }),
               ContainsSubstring("float64 and float32"));
}

TEST_CASE(
    "add_gated has the bits of its three ops, and a sum of products along rows those of the sum of all products") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    // Few and many rows; of one segment of a sum, of one block of segments, and of more.
    for (const Shape& shape : {Shape{3, 33}, Shape{70, 513}, Shape{5, 13, 4101}, Shape{64, 36'877}}) {
      Draw draw(4);
      const std::vector<Tensor> inputs = {draw.normals(shape), draw.normals(shape), draw.normals(shape.with(-1, 1))};
      INFO(to_string(dtype) << " " << to_string(shape));
      require_same_bits({inputs, [](const auto& v) { return add_gated(v[0], v[1], v[2]); }},
                        {inputs, [](const auto& v) { return add(v[0], add(v[1], mul(v[1], v[2]))); }}, dtype);
      const Tensor b = convert(inputs[1], dtype), dy = convert(inputs[0], dtype);
      Tape tape;
      Tensor gate;
      const Tensor y = [&] {
        const Recording on(tape);
        gate = tape.watch(convert(inputs[2], dtype));
        return add_gated(dy, b, gate);
      }();
      tape.backward(y, dy);
      REQUIRE(same_bits(tape.gradient(gate), sum(mul(dy, b), {-1}, true)));
    }
  }
  REQUIRE_THAT(refusal([] {
                 const Tensor a = zeros({2, 3}, DType::float32);
                 add_gated(a, a, a);
               }),
               ContainsSubstring("add_gated: a and b must be [… V] and the gate [… 1]; got [2, 3], [2, 3] and [2, 3]"));
}

TEST_CASE("swiglu has the values of silu of the gate times up, and refuses a width that is odd") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Draw draw(2);
    const std::vector<Tensor> inputs = {draw.normals({3, 7, 46}, 0, 3)};
    BoundCase one({inputs, [](const auto& v) { return swiglu(v[0]); }}, dtype);
    BoundCase two({inputs, [](const auto& v) { return mul(silu(slice(v[0], 2, 0, 23)), slice(v[0], 2, 23, 46)); }},
                  dtype);
    const Evaluation a = evaluate(one), b = evaluate(two);
    REQUIRE(same_bits(a.output, b.output));
    REQUIRE(relative_error(a.gradients[0], b.gradients[0]) < (dtype == DType::float32 ? 1e-6 : 1e-15));
  }
  REQUIRE_THAT(refusal([] {
                 swiglu(zeros({2, 3}, DType::float32));
               }),
               ContainsSubstring("swiglu: x must be packed gate and up [… 2F]; got [2, 3]"));
  REQUIRE_THAT(refusal([] { swiglu(zeros({}, DType::float32)); }), ContainsSubstring("[… 2F]; got []"));
  REQUIRE_THAT(refusal([] { swiglu(zeros({4}, DType::int32)); }), ContainsSubstring("int32"));
}

TEST_CASE("linear_cross_entropy has the bits of cross_entropy after linear, with all logits kept and in chunks") {
  // The limit of 64 MiB is 16 Mi float32 logits: 1,000 rows of 40,000 take three chunks, 100 rows one. Of 33,000 rows
  // backward processes 32,768 at a time (in float64 half as many), in chunks of 512 columns.
  constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{100, 40001}, {1000, 40000}, {33000, 600}};
  for (const auto& [rows, vocabulary] : kSizes) {
    for (const auto& [dtype, precision] :
         {std::pair{DType::float32, Precision::float32}, std::pair{DType::float32, Precision::bfloat16},
          std::pair{DType::float64, Precision::bfloat16}}) {
      const ProductPrecision scope(precision);
      INFO(rows << " rows, " << to_string(dtype) << " in " << to_string(precision));
      Draw draw(2);
      const std::vector<Tensor> inputs = {draw.normals({rows, 9}), draw.normals({vocabulary, 9}),
                                          draw.integers({rows}, -1, static_cast<std::int32_t>(vocabulary - 1))};
      require_same_bits({inputs, [](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2]); }},
                        {inputs, [](const auto& v) { return cross_entropy(linear(v[0], v[1]), v[2]); }}, dtype,
                        1e-14);  // sums of chunks are added
    }
  }
}

TEST_CASE("AsRecorded gives the rounding of a Recording until its scope ends") {
  Draw draw(3);
  const Tensor x = convert(draw.normals({70, 300}), DType::float32);
  const Tensor weight = convert(draw.normals({40, 300}), DType::float32);
  const auto product = [&] { return linear(x, weight); };
  const auto recorded = [&] {
    Tape tape;
    const Recording on(tape);
    return product();
  };
  const Tensor plain = product(), wanted = recorded();
  {
    const AsRecorded rounding;
    REQUIRE(rounds_as_recorded());
    REQUIRE(same_bits(product(), wanted));
  }
  REQUIRE_FALSE(rounds_as_recorded());
  REQUIRE(same_bits(product(), plain));
}

TEST_CASE("logits that fit are kept for backward, whatever their number of rows") {
  const std::int64_t vocabulary = 50257, rows = 300;
  const Tensor x = full({rows, 4}, DType::float32, 1), weight = zeros({vocabulary, 4}, DType::float32);
  const Tensor targets = zeros({rows}, DType::int32);
  Tape tape;
  const Recording on(tape);
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  const Tensor loss = linear_cross_entropy(tape.watch(x), weight, targets);
  REQUIRE(storage_pool::statistics().bytes_in_use - before >= rows * vocabulary * 4);
}

TEST_CASE("the logits of linear_cross_entropy take no more than 64 MiB, forward and backward") {
  const Tensor x = zeros({2000, 4}, DType::float32), weight = zeros({40000, 4}, DType::float32);
  const Tensor targets = zeros({2000}, DType::int32);
  Tape tape;
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  const auto peak_of = [&](const std::function<void()>& pass) {
    storage_pool::trim();
    storage_pool::reset_peak();
    pass();
    return storage_pool::statistics().peak_bytes - before;
  };
  constexpr std::int64_t kMost = std::int64_t{80} << 20;  // 64 MiB and scratch; all logits would take 305 MiB
  REQUIRE(peak_of([&] { linear_cross_entropy(x, weight, targets); }) < kMost);
  const Tensor loss = [&] {
    const Recording on(tape);
    return linear_cross_entropy(tape.watch(x), tape.watch(weight), targets);
  }();
  REQUIRE(peak_of([&] { tape.backward(loss); }) < kMost);
}
