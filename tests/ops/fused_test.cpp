// Fused ops against the ops that they combine: the same bits, also where the logits are too large to be kept.
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
  constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{100, 40000}, {1000, 40000}, {33000, 600}};
  for (const auto& [rows, vocabulary] : kSizes) {
    INFO(rows << " rows");
    for (const DType dtype : {DType::float32, DType::float64}) {
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

TEST_CASE("the logits of linear_cross_entropy take no more than 64 MiB") {
  const Tensor x = zeros({2000, 4}, DType::float32), weight = zeros({40000, 4}, DType::float32);
  const Tensor targets = zeros({2000}, DType::int32);
  const std::int64_t before = storage_pool::statistics().bytes_in_use;
  storage_pool::trim();
  storage_pool::reset_peak();
  linear_cross_entropy(x, weight, targets);
  REQUIRE(storage_pool::statistics().peak_bytes - before <
          std::int64_t{80} << 20);  // 64 MiB and scratch; all logits would take 305 MiB
}
