// Drivers over the op table other than gradients: float32 against float64, NaN and Inf, stale memory, thread counts,
// sizes of 0.
#include <cmath>
#include <limits>
#include <set>

#include "autograd/core/parallel.h"
#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

struct FillScope {
  explicit FillScope(std::uint8_t pattern) { storage_pool::fill_new_blocks(pattern); }
  ~FillScope() { storage_pool::fill_new_blocks(std::nullopt); }
};

void require_same(const Evaluation& a, const Evaluation& b) {
  REQUIRE(same_bits(a.output, b.output));
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (std::size_t i = 0; i < a.gradients.size(); ++i) REQUIRE(same_bits(a.gradients[i], b.gradients[i]));
}

template <class Body>
void for_each_case(std::uint64_t seeds, const Body& body) {
  for (const Row& row : op_table()) {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      Draw draw(seed + 1000);
      const Case drawn = row.draw(draw);
      INFO(describe(row, seed + 1000, drawn));
      body(row, drawn);
    }
  }
}

Tensor forward(const Case& drawn, const std::vector<Tensor>& inputs) {
  Tape tape;
  const Recording on(tape, kRandom);
  return drawn.call(inputs);
}

// The output after element j of input i is replaced by `value`.
Tensor replaced(const Case& drawn, std::size_t i, std::int64_t j, double value) {
  std::vector<Tensor> inputs = drawn.inputs;
  inputs[i] = convert(inputs[i], inputs[i].dtype());
  inputs[i].data<double>()[j] = value;
  return forward(drawn, inputs);
}

// Compares output and gradients in float32 with those in float64, for inputs that float32 represents exactly. Returns
// the number of gradients compared.
int require_float32_agrees(const Row& row, Case drawn, double floor) {
  for (Tensor& x : drawn.inputs) {
    if (x && x.dtype() == DType::float64) x = convert(convert(x, DType::float32), DType::float64);
  }
  BoundCase narrow(drawn, DType::float32), wide(drawn, DType::float64);
  const Evaluation a = evaluate(narrow), b = evaluate(wide);
  REQUIRE(relative_error(a.output, b.output, row.floor) < 5e-6);
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    INFO("gradient of " << narrow.store().parameters()[i]->name());
    REQUIRE(relative_error(a.gradients[i], b.gradients[i], floor) < 5e-6);
  }
  return static_cast<int>(a.gradients.size());
}

}  // namespace

TEST_CASE("float32 agrees with float64 in every op, outputs and gradients") {
  int compared = 0;
  for_each_case(50, [&](const Row& row, const Case& drawn) { compared += require_float32_agrees(row, drawn, 1e-2); });
  REQUIRE(compared > 1000);
}

TEST_CASE("float32 agrees with float64 where the mean of the inputs is ten standard deviations") {
  int compared = 0;
  for_each_case(50, [&](const Row& row, const Case& drawn) {
    Case shifted = drawn;
    for (Tensor& x : shifted.inputs) {
      if (!x || x.dtype() != DType::float64) continue;
      x = convert(x, DType::float64);
      for (double& value : std::span(x.data<double>(), static_cast<std::size_t>(x.numel()))) {
        value = row.offset_std * (value + 10);
      }
    }
    compared += require_float32_agrees(row, shifted, row.offset_floor);
  });
  REQUIRE(compared > 1000);
}

TEST_CASE("NaN in any input of any op reaches every output that depends on it") {
  int dependent = 0;
  std::set<std::string> ops;
  for_each_case(4, [&](const Row& row, const Case& drawn) {
    if (!row.propagates) return;
    const Tensor before = forward(drawn, drawn.inputs);
    for (std::size_t i = 0; i < drawn.inputs.size(); ++i) {
      const Tensor& x = drawn.inputs[i];
      if (!x || x.dtype() == DType::int32) continue;
      for (std::int64_t j = 0; j < x.numel(); j += 1 + x.numel() / 7) {
        // An output depends on x[j] if a finite change of x[j] changes it.
        const double value = x.data<double>()[j];
        const Tensor up = replaced(drawn, i, j, value + 0.1), down = replaced(drawn, i, j, value - 0.1);
        const Tensor corrupted = replaced(drawn, i, j, std::numeric_limits<double>::quiet_NaN());
        for (std::int64_t k = 0; k < before.numel(); ++k) {
          if (before.at(k) == up.at(k) && before.at(k) == down.at(k)) continue;
          INFO("input " << i << " element " << j << " output " << k << ": " << corrupted.at(k));
          REQUIRE(std::isnan(corrupted.at(k)));
          ++dependent;
          ops.insert(row.op);
        }
      }
    }
  });
  REQUIRE(dependent > 1000);
  REQUIRE(ops.size() > 15);
}

TEST_CASE("Inf in any input of any op leaves an output finite only if that is its limit") {
  int compared = 0;
  for_each_case(4, [&](const Row& row, const Case& drawn) {
    if (!row.propagates) return;
    for (std::size_t i = 0; i < drawn.inputs.size(); ++i) {
      const Tensor& x = drawn.inputs[i];
      if (!x || x.dtype() == DType::int32) continue;
      for (const double sign : {1.0, -1.0}) {
        for (std::int64_t j = 0; j < x.numel(); j += 1 + x.numel() / 5) {
          const Tensor at_infinity = replaced(drawn, i, j, sign * std::numeric_limits<double>::infinity());
          const Tensor far = replaced(drawn, i, j, sign * 1e12), before = forward(drawn, drawn.inputs);
          for (std::int64_t k = 0; k < far.numel(); ++k) {
            if (far.at(k) == before.at(k) || !std::isfinite(at_infinity.at(k))) continue;
            INFO("input " << i << " element " << j << " output " << k << ": " << at_infinity.at(k) << ", at 1e12 "
                          << far.at(k));
            REQUIRE(at_infinity.at(k) == Approx(far.at(k)).margin(1e-9));
            ++compared;
          }
        }
      }
    }
  });
  REQUIRE(compared > 20);
}

TEST_CASE("stale memory in output buffers changes no bit of any op") {
  for_each_case(8, [&](const Row&, const Case& drawn) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      BoundCase bound(drawn, dtype);
      const Evaluation clean = evaluate(bound);
      for (const std::uint8_t pattern : std::initializer_list<std::uint8_t>{0xFF, 0x7F, 0x00}) {
        const FillScope fill(pattern);
        require_same(clean, evaluate(bound));
      }
    }
  });
}

TEST_CASE("the number of threads changes no bit of any op") {
  for_each_case(4, [&](const Row&, const Case& drawn) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      BoundCase bound(drawn, dtype);
      const ThreadsScope one(1);
      const Evaluation alone = evaluate(bound);
      for (const int n : {2, 3, 4, 8}) {
        const ThreadsScope several(n);
        require_same(alone, evaluate(bound));
      }
    }
  });
}

TEST_CASE("the number of threads changes no bit of ops of sizes whose loops are distributed over threads") {
  // The cases of the table are too small for that. Products, attention, norms and reductions have tests of their own.
  Draw draw(5);
  const Tensor x = draw.normals({70, 6, 90}), little = draw.normals({8, 6, 90}), angles = draw.normals({6, 40});
  const Tensor near = draw.integers({70, 5, 90}, 0, 5), ids = draw.integers({500}, 0, 39);
  const Tensor expected = convert(exp(draw.normals({48, 90})), DType::float32), table = draw.normals({40, 90});
  using Tensors = std::vector<Tensor>;
  const std::vector<Case> cases = {
      {{little}, [](const Tensors& v) { return exp(v[0]); }},
      {{x}, [](const Tensors& v) { return relu(v[0]); }},
      {{x}, [](const Tensors& v) { return scale(v[0], 0.3); }},
      {{little}, [](const Tensors& v) { return pow(v[0], 3); }},
      {{x}, [](const Tensors& v) { return dropout(v[0], 0.3); }},
      {{x}, [](const Tensors& v) { return clamp(v[0], -0.5, 1); }},
      {{draw.integers({70, 1, 90}, 0, 1), x, x}, [](const Tensors& v) { return where(v[0], v[1], v[2]); }},
      {{x}, [](const Tensors& v) { return convert(v[0], DType::float64); }},
      {{draw.integers({420}, 0, 89)}, [](const Tensors& v) { return one_hot(v[0], 90); }},
      {{x}, [](const Tensors& v) { return swiglu(v[0]); }},
      {{x}, [](const Tensors& v) { return transpose(v[0], 0, 1); }},
      {{x}, [](const Tensors& v) { return transpose(v[0], 0, 2); }},
      {{x, x},
       [](const Tensors& v) {
         return concat({v[0], v[1]}, 2);
       }},
      {{x}, [](const Tensors& v) { return slice(v[0], 2, 1, 88); }},
      {{x}, [](const Tensors& v) { return max(v[0], 1); }},
      {{x, near}, [](const Tensors& v) { return gather(v[0], 1, v[1]); }},
      {{x, draw.normals({60})}, [](const Tensors& v) { return rms_norm_heads(v[0], v[1], 3); }},
      {{x}, [&](const Tensors& v) { return rotary(v[0], convert(angles, v[0].dtype()), 2); }},
      {{x, draw.normals({4, 90})}, [](const Tensors& v) { return short_conv(v[0], v[1]); }},
      {{table, ids}, [](const Tensors& v) { return embedding(v[0], v[1]); }},
      {{table, draw.integers({140, 3}, -1, 39)}, [](const Tensors& v) { return embedding_sum(v[0], v[1]); }},
      {{reshape(little, {48, 90})}, [&](const Tensors& v) { return expected_cross_entropy(v[0], expected); }},
  };
  const WholeTeam whole;
  for (const Case& drawn : cases) {
    BoundCase bound(drawn, DType::float32);
    const auto results = [&](int count) {
      const ThreadsScope threads(count);
      const FillScope fill(0xFF);
      Tape tape;
      Tensor y;
      {
        const Recording on(tape, kRandom);
        y = bound.forward();
      }
      bound.store().clear_gradients();
      if (y.requires_grad()) tape.backward(y, y.detach());
      Tensors all = {y.detach()};
      for (const auto& parameter : bound.store().parameters()) all.push_back(parameter->gradient().clone());
      return all;
    };
    const Tensors alone = results(1), together = results(3);
    INFO("case " << &drawn - cases.data());
    for (std::size_t i = 0; i < alone.size(); ++i) REQUIRE(same_bits(alone[i], together[i]));
  }
}

TEST_CASE("a gradient is added where one is present and written where none is") {
  for_each_case(4, [&](const Row& row, const Case& drawn) {
    if (!row.differentiable) return;
    BoundCase bound(drawn, DType::float64);
    const Evaluation once = evaluate(bound);
    // A second backward without clearing adds the same gradients again, so that every input has twice the first.
    Tape tape;
    Tensor y;
    {
      const Recording on(tape, kRandom);
      y = bound.forward();
    }
    tape.backward(y, cotangent(y.shape()));
    std::size_t i = 0;
    for (const auto& parameter : bound.store().parameters()) {
      const Tensor twice = parameter->gradient();
      for (std::int64_t k = 0; k < twice.numel(); ++k) {
        INFO(parameter->name() << " element " << k);
        REQUIRE(twice.at(k) == Approx(2 * once.gradients[i].at(k)).epsilon(1e-12).margin(1e-13));
      }
      ++i;
    }
  });
}

TEST_CASE("sizes of zero give shapes and values of the definition, and finite gradients") {
  int cases = 0;
  for (const Row& row : op_table()) {
    for (const auto& make : row.empties) {
      const Case drawn = make();
      INFO(describe(row, 0, drawn));
      REQUIRE(drawn.call.has_definition());
      const Exact expected = drawn.call.definition({drawn.inputs.begin(), drawn.inputs.end()});
      for (const DType dtype : {DType::float32, DType::float64}) {
        BoundCase bound(drawn, dtype);
        const FillScope fill(0xFF);
        const Evaluation result = evaluate(bound);
        REQUIRE(result.output.shape() == expected.shape());
        for (std::int64_t k = 0; k < expected.numel(); ++k) {
          const auto value = static_cast<double>(expected[k].real());
          // Sums and products of nothing have values. What an op returns for 0/0 is not part of its definition.
          if (std::isfinite(value)) REQUIRE(std::abs(result.output.at(k) - value) < 1e-5);
        }
        for (const Tensor& gradient : result.gradients) {
          for (std::int64_t k = 0; k < gradient.numel(); ++k) REQUIRE(std::isfinite(gradient.at(k)));
        }
        ++cases;
      }
    }
  }
  REQUIRE(cases >= 10);
}
