// Encoder layer, decoder layer, whole encoder–decoders and attention with masks against PyTorch in float64: values and
// every gradient (tests/fixtures/make_seq2seq.py).
#include <cmath>
#include <functional>

#include "tests/catch.h"
#include "tests/fixture.h"
#include "tests/nn/small_seq2seq.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr double kMaxSeq2SeqError = 1e-11;

void require_near(const std::string& name, const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  for (std::int64_t i = 0; i < found.numel(); ++i) {
    const double gap = std::abs(found.at(i) - expected.at(i));
    INFO(name << " element " << i << ": " << found.at(i) << " against " << expected.at(i));
    REQUIRE(gap <= kMaxSeq2SeqError * (1 + std::abs(expected.at(i))));
  }
}

// Fixtures hold float64 alone.
Tensor integers(const Tensor& x) {
  Tensor y = empty(x.shape(), DType::int32);
  for (std::int64_t i = 0; i < x.numel(); ++i) y.data<std::int32_t>()[i] = static_cast<std::int32_t>(x.at(i));
  return y;
}

void load(ParameterStore& store, const Fixture& f) {
  store.seal(1);
  for (const auto& parameter : store.parameters()) {
    const Tensor& value = f[parameter->name()];
    INFO(parameter->name());
    REQUIRE(parameter->shape() == value.shape());
    std::ranges::copy(value.values<double>(), store.values().data<double>() + parameter->offset());
  }
  store.mark_changed();
}

// Requires every parameter's gradient. The gradient of the keys' biases is zero by mathematics, and rounding in both.
void require_gradients(const ParameterStore& store, const Fixture& f) {
  for (const auto& parameter : store.parameters()) {
    require_near("d" + parameter->name(), parameter->gradient(), f["d" + parameter->name()]);
  }
}

// Requires y = op(inputs) and the gradients of all inputs named, for the cotangent dy.
void require_op(const Fixture& f, const std::vector<std::string>& names, const std::string& suffix,
                const std::function<Tensor(const std::vector<Tensor>&)>& op) {
  Tape tape;
  std::vector<Tensor> inputs;
  const Tensor y = [&] {
    const Recording on(tape);
    for (const std::string& name : names) inputs.push_back(tape.watch(f[name]));
    return op(inputs);
  }();
  require_near("y" + suffix, y, f["y" + suffix]);
  tape.backward(y, f["dy"]);
  for (std::size_t i = 0; i < names.size(); ++i) {
    require_near("d" + names[i] + suffix, tape.gradient(inputs[i]), f["d" + names[i] + suffix]);
  }
}

BlockOptions layer_options(NormOrder order) {
  return {{.n_head = 2,
           .n_embd = 8,
           .activation = order == NormOrder::pre ? Activation::gelu : Activation::relu,
           .norm_order = order},
          /*causal=*/false};
}
std::string name_of(NormOrder order) { return order == NormOrder::pre ? "pre" : "post"; }

}  // namespace

TEST_CASE("PyTorch: an encoder layer with a padding mask, in either order") {
  for (const NormOrder order : {NormOrder::pre, NormOrder::post}) {
    const Fixture f = read_fixture("encoder_layer_" + name_of(order));
    ParameterStore store(DType::float64);
    const Block block(Scope(store), layer_options(order));
    load(store, f);
    const Tensor mask = integers(f["mask"]);
    require_op(f, {"x"}, "", [&](const auto& v) { return block(v[0], nullptr, mask); });
    REQUIRE(store.parameters().size() == 12);
    require_gradients(store, f);
  }
}

TEST_CASE("PyTorch: a decoder layer with cross-attention and a padding mask, in either order") {
  for (const NormOrder order : {NormOrder::pre, NormOrder::post}) {
    const Fixture f = read_fixture("decoder_layer_" + name_of(order));
    ParameterStore store(DType::float64);
    const DecoderBlock block(Scope(store), layer_options(order));
    load(store, f);
    const Tensor mask = integers(f["mask"]);
    require_op(f, {"x", "memory"}, "", [&](const auto& v) {
      return block(v[0], {block.cross.keys_values(v[1]), mask});
    });
    REQUIRE(store.parameters().size() == 20);
    require_gradients(store, f);
  }
}

TEST_CASE("PyTorch: whole encoder-decoders, post-norm with a tied head and pre-norm with a shared table") {
  for (const NormOrder order : {NormOrder::pre, NormOrder::post}) {
    const bool pre = order == NormOrder::pre;
    const Fixture f = read_fixture("seq2seq_" + name_of(order));
    const Seq2SeqConfig config{{.n_layer = 2,
                                .n_head = 2,
                                .n_embd = 4,
                                .vocab_size = 7,
                                .tie_weights = !pre,
                                .activation = pre ? Activation::gelu : Activation::relu,
                                .norm_order = order,
                                .positions = Positions::sinusoidal},
                               pre ? 7 : 9,
                               pre};
    ParameterStore store(DType::float64);
    const Seq2Seq model(Scope(store), config);
    load(store, f);
    const Batch batch{.ids = integers(f["ids"]),
                      .targets = integers(f["targets"]),
                      .source = integers(f["source"]),
                      .source_mask = integers(f["mask"])};
    require_near("logits", model.logits(batch.source, batch.source_mask, batch.ids), f["logits"]);
    Tape tape;
    const Tensor loss = [&] {
      const Recording on(tape);
      return model.loss(batch, {.label_smoothing = 0.1});
    }();
    REQUIRE(loss.item() == Approx(f["loss"].item()).epsilon(kMaxSeq2SeqError));
    tape.backward(loss);
    require_gradients(store, f);
  }
}

TEST_CASE("PyTorch: attention with a mask for every query") {
  const Fixture f = read_fixture("attention_mask");
  const Tensor common = integers(f["common"]), own = integers(f["own"]), key_mask = integers(f["key_mask"]);
  require_op(f, {"q", "kv"}, "_common",
             [&](const auto& v) { return attention(v[0], v[1], {.n_head = 2, .mask = common}); });
  require_op(f, {"q", "kv"}, "_own", [&](const auto& v) {
    return attention(v[0], v[1], {.n_head = 2, .causal = true, .key_mask = key_mask, .mask = own});
  });
}
