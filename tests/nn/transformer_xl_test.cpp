// Transformer-XL: against PyTorch over several segments, causal to the bit, exact gradients with a memory.
#include <cmath>

#include "autograd/core/storage.h"
#include "autograd/gradcheck.h"
#include "tests/catch.h"
#include "tests/fixture.h"
#include "tests/nn/small_xl.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

Tensor as_integers(const Tensor& x) {
  Tensor y = empty(x.shape(), DType::int32);
  for (std::int64_t i = 0; i < x.numel(); ++i) y.data<std::int32_t>()[i] = static_cast<std::int32_t>(x.at(i));
  return y;
}

void require_close(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  for (std::int64_t i = 0; i < found.numel(); ++i) {
    INFO("element " << i << ": " << found.at(i) << " against " << expected.at(i));
    REQUIRE(std::abs(found.at(i) - expected.at(i)) <= 1e-11 * (1 + std::abs(expected.at(i))));
  }
}

// The most bytes that the third step of a model takes at once, beside those that it kept from the second.
double bytes_of_step(const TransformerXlConfig& config, std::int64_t batch) {
  const SmallXl xl(config);
  const std::unique_ptr<SegmentMemory> memory = xl.memory(batch);
  const Tensor ids = random_ids(batch, config.block_size, config.vocab_size, 5);
  Tape tape;
  std::int64_t before = 0;
  for (int step = 0; step < 3; ++step) {
    storage_pool::trim();
    before = storage_pool::statistics().bytes_in_use;
    storage_pool::reset_peak();
    const Tensor loss = [&] {
      const Recording on(tape);
      return xl.model.loss({.ids = ids, .targets = ids}, {}, memory.get());
    }();
    tape.backward(loss);
  }
  return static_cast<double>(storage_pool::statistics().peak_bytes - before);
}

}  // namespace

TEST_CASE("transformer-xl: losses, memories and all gradients of three segments are those of PyTorch") {
  const Fixture f = read_fixture("transformer_xl");
  ParameterStore store(DType::float64);
  const TransformerXlModel model(
      Scope(store), TransformerXlConfig{{.n_layer = 2, .n_head = 2, .n_embd = 6, .block_size = 4, .vocab_size = 7}, 5});
  store.seal(1);
  for (const auto& parameter : store.parameters()) {
    const Tensor& value = f["parameter." + parameter->name()];
    REQUIRE(parameter->shape() == value.shape());
    std::ranges::copy(value.values<double>(), store.values().data<double>() + parameter->offset());
  }
  store.mark_changed();
  REQUIRE(f.tensors().size() == 2 * store.parameters().size() + 3 * 5);
  const std::unique_ptr<State> memory = model.make_carried(2);
  Tape tape;
  for (const std::string segment : {"0.", "1.", "2."}) {
    const Batch batch{.ids = as_integers(f[segment + "ids"]), .targets = as_integers(f[segment + "targets"])};
    const Tensor loss = [&] {
      const Recording on(tape);
      return model.loss(batch, {}, memory.get());
    }();
    require_close(loss, f[segment + "loss"]);
    for (const auto& [name, tensor] : memory->tensors()) require_close(*tensor, f[segment + name]);
    store.clear_gradients();
    tape.backward(loss);
  }
  for (const auto& parameter : store.parameters()) {
    INFO(parameter->name());
    require_close(parameter->gradient(), f["gradient." + parameter->name()]);
  }
}

TEST_CASE("transformer-xl: changing a token changes its own and all later logits, and no bit of earlier ones") {
  for (const TransformerXlConfig& config : xl_variants()) {
    const SmallXl xl(config);
    const std::int64_t tokens = 40, v = config.vocab_size;  // the memory reaches over all of it by way of the layers
    const Tensor ids = random_ids(2, tokens, v, 5), before = in_segments(xl, ids);
    for (const std::int64_t t : {0, 8, 9, 17, 26, 39}) {
      Tensor changed = copy_of<std::int32_t>(ids);
      std::int32_t& id = changed.data<std::int32_t>()[tokens + t];  // of the second sequence
      id = static_cast<std::int32_t>((id + 1) % v);
      const Tensor after = in_segments(xl, changed);
      INFO("token " << t);
      REQUIRE(same_bits(after, 0, before, 0, (tokens + t) * v));
      const std::int64_t reach = std::min(tokens, t / 9 * 9 + 9 + config.memory);  // within one layer
      for (std::int64_t later = t; later < reach; ++later) {
        REQUIRE_FALSE(same_bits(after, (tokens + later) * v, before, (tokens + later) * v, v));
      }
    }
  }
}

TEST_CASE("transformer-xl: all gradients with a memory and dropout, against differences") {
  for (TransformerXlConfig config : xl_variants()) {
    if (config.activation == Activation::relu) config.activation = Activation::silu;
    config.dropout = 0.2;
    SmallXl xl(config, DType::float64);
    const Tensor ids = random_ids(2, 10, 7, 8), targets = random_ids(2, 4, 7, 9);
    const std::unique_ptr<SegmentMemory> memory = xl.memory(2);
    xl.model.logits(columns(ids, 0, 6), memory.get());
    std::vector<Tensor> held;  // the memory is a constant, so every call begins with the same
    for (const auto& [name, tensor] : memory->tensors()) held.push_back(*tensor);
    GradcheckOptions options;
    options.random = {.seed = 5, .step = 3};
    options.relative_floor = 1e-4;  // the gradient of the keys' biases is 0 by mathematics
    const auto loss = [&] {
      for (std::size_t i = 0; i < held.size(); ++i) *memory->tensors()[i].second = held[i];
      return xl.model.loss({.ids = columns(ids, 6, 10), .targets = targets}, {}, memory.get());
    };
    const auto results = gradcheck(xl.store, loss, options);
    REQUIRE(results.size() > 20);
    for (const GradcheckResult& result : results) {
      INFO(result.name << ": error " << result.error << ", worst " << result.worst << " " << result.worst_analytic
                       << " against " << result.worst_numeric);
      REQUIRE(result.passed(2e-7));
    }
  }
}

TEST_CASE("transformer-xl: no bit of loss, gradients and memory depends on the number of threads") {
  SmallXl xl(with_memory(300, 300));
  const Tensor ids = random_ids(2, 600, 7, 8);
  std::vector<Tensor> first;
  for (const int count : {1, 2, 5}) {
    const ThreadsScope scope(count);
    const std::unique_ptr<SegmentMemory> memory = xl.memory(2);
    Tape tape;
    std::vector<Tensor> found;
    for (const std::int64_t begin : {0, 300}) {
      const Tensor part = columns(ids, begin, begin + 300);
      xl.store.clear_gradients();
      const Tensor loss = [&] {
        const Recording on(tape);
        return xl.model.loss({.ids = part, .targets = part}, {}, memory.get());
      }();
      found.push_back(loss.detach());
      tape.backward(loss);
    }
    for (const auto& parameter : xl.store.parameters()) found.push_back(parameter->gradient().clone());
    for (const auto& [name, tensor] : memory->tensors()) found.push_back(*tensor);
    if (first.empty()) first = found;
    for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(same_bits(found[i], first[i]));
  }
}

// The memory is as long as a segment, so that the new one is what the blocks save anyway.
TEST_CASE("transformer-xl: what each block saves is estimated closely, with and without a memory") {
  TransformerXlConfig config{{.n_layer = 2, .n_head = 4, .n_embd = 64, .block_size = 64, .vocab_size = 50}};
  for (const std::int64_t memory : {0, 64}) {
    config.memory = memory;
    TransformerXlConfig deep = config;
    deep.n_layer = 8;
    const double taken = bytes_of_step(deep, 8) - bytes_of_step(config, 8);
    const double estimate = static_cast<double>(SmallXl(deep).model.activation_bytes(8, 64)) -
                            static_cast<double>(SmallXl(config).model.activation_bytes(8, 64));
    INFO("memory " << memory << ": estimated " << estimate << ", taken " << taken);
    CHECK(estimate > 0.98 * taken);
    CHECK(estimate < 1.02 * taken);
  }
}

TEST_CASE("transformer-xl: names, shapes and number of parameters") {
  const auto count = [](const TransformerXlConfig& config) {
    const SmallXl xl(config);
    std::int64_t sum = 0;
    for (const auto& parameter : xl.store.parameters()) sum += parameter->shape().numel();
    return std::pair{sum, xl.store.multiplied_numel()};
  };
  for (const TransformerXlConfig& config : xl_variants()) {
    const auto [all, multiplied] = count(config);
    REQUIRE(all - (config.tie_weights ? 0 : 7 * 12) - (config.ngram_orders.empty() ? 0 : 2 * 49 * 12) == multiplied);
  }
  const SmallXl xl(kSmallXl);
  REQUIRE(xl.store.find("h.1.attn.c_kv.weight").shape() == Shape{24, 12});
  REQUIRE(xl.store.find("h.0.attn.c_r.weight").shape() == Shape{12, 12});
  REQUIRE(xl.store.find("h.0.attn.u").group() == ParamGroup::no_decay);
  REQUIRE(xl.store.parameters().size() == 2 * 17 + 3);
  const double plain = 6 * static_cast<double>(xl.store.multiplied_numel());
  REQUIRE(flop_per_token(xl.model, xl.store, 9) == Approx(plain + 18 * 2 * 12 * 20 + 12 * 2 * 144 * 11 / 9.0));
}
