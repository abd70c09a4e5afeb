// recompute(): the bits of the function itself, for values, gradients and random numbers, with less memory.
#include "autograd/recompute.h"

#include <algorithm>
#include <rapidcheck.h>

#include "autograd/core/storage.h"
#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/tensors.h"

using namespace maki;
using namespace maki::tests;

namespace {

// A chain of residual branches with dropout, of which some are recomputed.
struct Chain {
  Chain(std::int64_t layers, std::int64_t width, DType dtype = DType::float32) : store(dtype) {
    embedded = &store.add("embedded", {5, width}, init::normal(1));
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      up.push_back(&store.add(name + ".up", {2 * width, width}, init::normal(0.3)));
      down.push_back(&store.add(name + ".down", {width, 2 * width}, init::normal(0.3)));
      gain.push_back(&store.add(name + ".gain", {width}, init::constant(1)));
    }
    store.seal(3);
  }

  Tensor branch(std::size_t i, const Tensor& x) const {
    const Tensor hidden = gelu(linear(rms_norm(x, *gain[i], 1e-5), *up[i]));
    return add(x, dropout(linear(dropout(hidden, 0.2), *down[i]), 0.3));
  }
  Tensor operator()(unsigned recomputed, const std::vector<std::int32_t>& ids = {4, 0, 2, 2}) const {
    Tensor x = embedding(*embedded, tensor(ids, {static_cast<std::int64_t>(ids.size())}));
    for (std::size_t i = 0; i < up.size(); ++i) {
      const auto f = [this, i](const Tensor& y) { return branch(i, y); };
      x = (recomputed >> i & 1) != 0 ? recompute(x, f) : f(x);
    }
    return dropout(x, 0.1);
  }

  ParameterStore store;
  Parameter* embedded;
  std::vector<Parameter*> up, down, gain;
};

// A parameter in a store of its own, which only what is recomputed uses.
struct InnerParameter {
  explicit InnerParameter(ParamGroup group = ParamGroup::decay)
      : w(store.add("inner", {3, 3}, init::normal(1), group)) {
    store.seal(2);
  }
  Tensor input() const { return embedding(*chain.embedded, tensor(std::vector<std::int32_t>{1, 3}, {2})); }

  Chain chain{1, 3};
  ParameterStore store;
  Parameter& w;
};

// The output and all gradients of a step.
std::pair<Tensor, Tensor> step(Chain& chain, unsigned recomputed, std::uint64_t seed = 9) {
  Tape tape;
  Tensor y;
  {
    const Recording on(tape, {.seed = seed, .step = 4});
    y = chain(recomputed);
  }
  chain.store.clear_gradients();
  Tensor cotangent = empty_like(y);
  dispatch(y.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < y.numel(); ++i) cotangent.data<T>()[i] = static_cast<T>(i % 7) - T{3};
  });
  tape.backward(y, cotangent);
  return {y, chain.store.take_gradients()};
}

}  // namespace

TEST_CASE("values, gradients and dropout have the same bits, whatever is recomputed") {
  REQUIRE(rc::check("chains", [] {
    const auto layers = *rc::gen::inRange<std::int64_t>(1, 5), width = *rc::gen::inRange<std::int64_t>(1, 20);
    const auto recomputed = *rc::gen::inRange(1u, 1u << layers), seed = *rc::gen::inRange(0u, 100u);
    Chain chain(layers, width, *rc::gen::element(DType::float32, DType::float64));
    const auto [y, gradients] = step(chain, 0, seed);
    const auto [again, same] = step(chain, recomputed, seed);
    RC_ASSERT(same_bits(y, again));
    RC_ASSERT(same_bits(gradients, same));
  }));
}

TEST_CASE("gradients through recompute are those of differences, also where one is inside another") {
  Chain chain(2, 3, DType::float64);
  const auto loss = [&] {
    const Tensor x = embedding(*chain.embedded, tensor(std::vector<std::int32_t>{1, 3}, {2}));
    return recompute(x, [&](const Tensor& y) {
      const auto inner = [&](const Tensor& z) { return chain.branch(1, z); };
      return recompute(chain.branch(0, y), inner);
    });
  };
  for (const GradcheckResult& r : gradcheck(chain.store, loss, {.relative_floor = 1e-3})) {
    INFO(r.name);
    REQUIRE(r.passed(1e-7));
  }
}

TEST_CASE("a parameter that is the input of recompute() and used inside has the gradients of both") {
  ParameterStore store(DType::float64);
  const Parameter& w = store.add("w", {3, 3}, init::normal(1));
  store.seal(1);
  const auto product = [&](const Tensor& x) { return matmul(x, w); };
  const bool nested = GENERATE(false, true);
  const auto loss = [&] {
    return nested ? recompute(w, [&](const Tensor& x) { return add(recompute(w, product), x); })
                  : recompute(w, product);
  };
  REQUIRE(gradcheck(store, loss).front().passed(1e-9));
}

TEST_CASE("a step keeps the inputs of recomputed parts alone") {
  const std::vector<std::int32_t> ids(8192, 1);
  const auto kept = [&](unsigned recomputed) {
    Chain chain(4, 64);
    Tape tape;
    const Recording on(tape);
    const std::int64_t before = storage_pool::statistics().bytes_in_use;
    const Tensor y = chain(recomputed, ids);
    return storage_pool::statistics().bytes_in_use - before;
  };
  const std::int64_t all = kept(0), some = kept(0b0101), none = kept(0b1111);
  REQUIRE(some < all * 2 / 3);
  REQUIRE(none < all / 4);
}

TEST_CASE("without a recording, or for an input without a gradient, the function is called once") {
  ParameterStore store;
  Parameter& w = store.add("w", {2, 2}, init::normal(1));
  store.seal(1);
  int calls = 0;
  const auto f = [&](const Tensor& x) {
    ++calls;
    return linear(x, w);
  };
  const Tensor x = tensor(std::vector<float>{1, 2}, {1, 2});
  REQUIRE(same_bits(recompute(x, f), linear(x, w)));
  Tape tape;
  {
    const Recording on(tape);
    const Tensor y = recompute(x, f);
    tape.backward(y, full(y.shape(), y.dtype(), 1));
  }
  REQUIRE(calls == 2);
  REQUIRE(w.gradient().at(1) == 2);
}

TEST_CASE("a function that fails in either pass leaves no gradient, and a parameter that changed is reported") {
  ParameterStore store;
  Parameter& w = store.add("w", {2, 2}, init::normal(1));
  store.seal(1);
  int calls = 0;
  const auto record = [&](Tape& tape, int failing) {
    const Recording on(tape);
    calls = 0;
    const Tensor input = tape.watch(tensor(std::vector<float>{1, 2}, {1, 2}));
    return sum(recompute(input, [&calls, &w, failing](const Tensor& x) {
      check(++calls != failing, "call {}", calls);
      return linear(x, w);
    }));
  };
  Tape tape;
  REQUIRE(error_message<Error>([&] { record(tape, 1); }) == "call 1");
  REQUIRE(tape.size() == 0);
  const Tensor loss = record(tape, 2);
  REQUIRE(error_message<Error>([&] { tape.backward(loss); }) == "call 2");
  REQUIRE(w.gradient().at(0) == 0);
  const Tensor changed = record(tape, 0);
  store.mark_changed();
  REQUIRE(contains(error_message<Error>([&] { tape.backward(changed); }), "parameter w was updated after"));
  tape.backward(record(tape, 0));
  REQUIRE(w.gradient().at(0) != 0);
}

TEST_CASE("inspection names the op inside a recomputed part whose output or gradient is not finite") {
  const auto first_bad = [](double value, const std::function<Tensor(const Tensor&)>& f) {
    ParameterStore store(DType::float64);
    const Parameter& p = store.add("p", {2, 2}, init::constant(value));
    store.seal(1);
    Tape tape;
    tape.inspect(true);
    Tensor y;
    {
      const Recording on(tape);
      y = recompute(embedding(p, tensor(std::vector<std::int32_t>{1, 0}, {2})),
                    [&](const Tensor& x) { return recompute(x, f); });
    }
    Tensor cotangent = empty_like(y);
    std::ranges::fill(cotangent.values<double>(), 1);
    tape.backward(y, cotangent);
    return tape.first_non_finite();
  };
  const auto square = [](const Tensor& x) { return mul(x, x); };
  REQUIRE(first_bad(2, square).empty());
  REQUIRE_THAT(first_bad(1e200, square), ContainsSubstring("output of mul"));
  // An op whose backward pass is wrong.
  const auto spoils = [](const Tensor& x) {
    return record("spoils", Tensor(mul(x, x).detach()), {x},
                  [](Grads& g) { g.in<double>(0).put(0, std::numeric_limits<double>::quiet_NaN()); });
  };
  REQUIRE_THAT(first_bad(2, spoils), ContainsSubstring("gradient of spoils"));
}

TEST_CASE("the gradient of a parameter is complete when backward has passed its first use, also within recompute()") {
  for (const unsigned recomputed : {0U, 0b101U, 0b111U}) {
    INFO("recomputed: " << recomputed);
    Chain chain(3, 4);
    Tape tape;
    Tensor y;
    {
      const Recording on(tape, {.seed = 9, .step = 4});
      y = linear(chain(recomputed), *chain.up[1]);  // its second use
    }
    const auto uses = tape.first_uses();
    REQUIRE(uses.size() == chain.store.parameters().size());
    std::vector<std::pair<const Parameter*, Tensor>> complete;
    std::size_t next = tape.size();
    tape.backward(y, full(y.shape(), y.dtype(), 1), [&](std::size_t node) {
      REQUIRE(node == --next);
      for (const auto& [parameter, first] : uses) {
        if (first == node) complete.emplace_back(parameter, copy_of<float>(parameter->gradient()));
      }
    });
    REQUIRE(next == 0);
    REQUIRE(complete.size() == uses.size());
    for (const auto& [parameter, gradient] : complete) {
      INFO(parameter->name());
      REQUIRE(same_bits(gradient, parameter->gradient()));
    }
  }
}

TEST_CASE("an error in the middle of backward leaves no gradient of a parameter that only a recomputed part uses") {
  InnerParameter inner;
  Tape tape;
  const auto backward = [&](bool fails) {
    Tensor loss;
    {
      const Recording on(tape);
      loss = sum(recompute(scale(inner.input(), 2), [&](const Tensor& y) { return linear(y, inner.w); }));
    }
    tape.backward(loss, 1, [&](std::size_t node) { check(!fails || node != 1, "stopped"); });
  };
  backward(false);
  const Tensor wanted = inner.w.gradient().clone();
  inner.store.clear_gradients();
  REQUIRE(error_message<Error>([&] { backward(true); }) == "stopped");
  REQUIRE_FALSE(inner.w.gradient_written());
  backward(false);
  REQUIRE(same_bits(inner.w.gradient(), wanted));
}

TEST_CASE("parameters of a recompute within a recompute are known to the tape, and must not change before backward") {
  const bool frozen = GENERATE(false, true);
  InnerParameter inner(frozen ? ParamGroup::frozen : ParamGroup::decay);
  Tape tape;
  Tensor loss;
  {
    const Recording on(tape);
    const auto product = [&](const Tensor& x) { return linear(x, inner.w); };
    loss = sum(recompute(inner.input(), [&](const Tensor& x) { return recompute(x, product); }));
  }
  REQUIRE(std::ranges::any_of(tape.first_uses(), [&](const auto& use) { return use.first == &inner.w; }) != frozen);
  inner.store.mark_changed();
  REQUIRE(error_message<Error>([&] { tape.backward(loss); }).find("parameter inner was updated") != std::string::npos);
}
