// rms_norm, rotary, swiglu and a block of all three against PyTorch in float64: values and every gradient
// (tests/fixtures/make_llama.py).
#include <cmath>

#include "nn/transformer.h"
#include "tests/catch.h"
#include "tests/fixture.h"
#include "tests/nn/small_gpt.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr double kMaxError = 1e-11;

void require_close(const std::string& name, const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  for (std::int64_t i = 0; i < found.numel(); ++i) {
    const double gap = std::abs(found.at(i) - expected.at(i));
    INFO(name << " element " << i << ": " << found.at(i) << " against " << expected.at(i));
    REQUIRE(gap <= kMaxError * (1 + std::abs(expected.at(i))));
  }
}

// Requires the value y and the gradients d… of op at the named inputs of the fixture.
void require_op(const Fixture& f, const std::vector<std::string>& names, const std::string& y,
                const std::string& suffix, const std::function<Tensor(const std::vector<Tensor>&)>& op) {
  Tape tape;
  std::vector<Tensor> inputs;
  const Tensor found = [&] {
    const Recording on(tape);
    for (const std::string& name : names) inputs.push_back(tape.watch(f[name]));
    return op(inputs);
  }();
  require_close(y, found, f[y]);
  tape.backward(found, f["dy"]);
  for (std::size_t i = 0; i < names.size(); ++i) {
    require_close("d" + names[i] + suffix, tape.gradient(inputs[i]), f["d" + names[i] + suffix]);
  }
}

}  // namespace

TEST_CASE("PyTorch: rms_norm") {
  const Fixture f = read_fixture("rms_norm");
  require_op(f, {"x", "weight"}, "y", "", [](const auto& v) { return rms_norm(v[0], v[1]); });
  require_op(f, {"x"}, "plain", "_plain", [](const auto& v) { return rms_norm(v[0], {}, 1e-3); });
}

TEST_CASE("PyTorch: swiglu") {
  require_op(read_fixture("swiglu"), {"x"}, "y", "", [](const auto& v) { return swiglu(v[0]); });
}

TEST_CASE("PyTorch: rotary positions pair the halves of a head, as in transformers") {
  const Tensor angles = rotary_angles(5, 6, 500, DType::float64, 11);
  require_op(read_fixture("rotary"), {"x"}, "y", "", [&](const auto& v) { return rotary(v[0], angles, 4); });
}

TEST_CASE("PyTorch: a block with RMS norms, rotary positions and SwiGLU") {
  const Fixture f = read_fixture("llama_block");
  ParameterStore store(DType::float64);
  const TransformerConfig config{.n_head = 2,
                                 .n_embd = 12,
                                 .bias = false,
                                 .activation = Activation::swiglu,
                                 .norm = NormKind::rms,
                                 .positions = Positions::rotary};
  const Block block(Scope(store), block_options(config, DType::float64));
  store.seal(1);
  for (const auto& parameter : store.parameters()) {
    const Tensor& value = f[parameter->name()];
    REQUIRE(parameter->shape() == value.shape());
    std::ranges::copy(value.values<double>(), store.values().data<double>() + parameter->offset());
  }
  store.mark_changed();
  require_op(f, {"x"}, "y", "", [&](const auto& v) { return block(v[0]); });
  REQUIRE(store.parameters().size() == 6);
  for (const auto& parameter : store.parameters()) {
    require_close(parameter->name(), parameter->gradient(), f["d" + parameter->name()]);
  }
}
