// A tensor of more than 2^31 elements, whose places do not fit into 32 bits. Hidden, because it takes 18 GB of memory;
// scripts/check.sh huge runs it.
#include <cmath>

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct LossOfRows {
  // The loss of the last of these rows [rows, cols] with the weight [classes, cols], and its gradients.
  LossOfRows(const Tensor& rows, const Tensor& weights, std::int32_t target) {
    ParameterStore store(DType::float32);
    const Parameter& x = store.add("x", rows.shape(), init::values(rows));
    const Parameter& weight = store.add("weight", weights.shape(), init::values(weights));
    store.seal();
    Tensor targets = full({rows.shape()[0]}, DType::int32, -1);
    targets.values<std::int32_t>().back() = target;
    Tape tape;
    const Tensor mean = [&] {
      const Recording on(tape);
      return cross_entropy(linear(x, weight), targets, {.ignored = -1});
    }();
    tape.backward(mean, 1);
    loss = mean.item();
    of_rows = copy_of<float>(x.gradient());
    of_weight = copy_of<float>(weight.gradient());
  }

  double loss;
  Tensor of_rows, of_weight;
};

}  // namespace

TEST_CASE("of more than 2^31 logits, the last have the loss and the gradients that they have alone", "[.huge]") {
  constexpr std::int64_t kCols = 8, kClasses = 65'537, kRows = (std::int64_t{1} << 31) / kClasses + 2;
  STATIC_REQUIRE((kRows - 1) * kClasses > std::int64_t{1} << 31);
  const Tensor x = random_tensor({kRows, kCols}, 1, DType::float32),
               weight = random_tensor({kClasses, kCols}, 2, DType::float32),
               last = copy_of<float>(slice(x, 0, kRows - 1, kRows));
  const LossOfRows alone(last, weight, kClasses - 1), all(x, weight, kClasses - 1);
  REQUIRE(alone.loss > 1);
  REQUIRE(std::abs(all.loss - alone.loss) < 1e-6 * alone.loss);
  REQUIRE(relative_error(slice(all.of_rows, 0, kRows - 1, kRows), alone.of_rows) < 1e-6);
  REQUIRE(relative_error(all.of_weight, alone.of_weight) < 1e-6);
  const Tensor others = slice(all.of_rows, 0, 0, kRows - 1);
  for (std::int64_t i = 0; i < others.numel(); ++i) REQUIRE(others.at(i) == 0);
}
