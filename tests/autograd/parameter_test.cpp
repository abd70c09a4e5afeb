#include "autograd/parameter.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "tests/catch.h"
#include "tests/files.h"

using namespace maki;
using namespace maki::tests;

TEST_CASE("a store lays parameters out by group in the order of creation, aligned, with zero padding") {
  ParameterStore store(DType::float32);
  Parameter& a = store.add("a", {3, 5}, init::constant(1));
  Parameter& b = store.add("b", {7}, init::constant(2));
  Parameter& frozen = store.add("frozen", {2, 2}, init::constant(3), ParamGroup::frozen);
  Parameter& c = store.add("c", {4, 4}, init::normal(0.02));
  REQUIRE_THROWS_WITH(a.value(), ContainsSubstring("seal"));
  store.seal(1);

  REQUIRE(a.offset() == 0);
  REQUIRE(c.offset() == 16);
  REQUIRE(b.offset() == 32);
  REQUIRE(frozen.offset() == 48);
  REQUIRE(store.range(ParamGroup::decay).end == 32);
  REQUIRE(store.trainable().end == 48);
  REQUIRE(store.numel() == 15 + 7 + 4 + 16);
  const auto values = store.values().values<float>();
  for (const std::size_t padding : {15u, 39u, 40u, 47u, 52u, 63u}) REQUIRE(values[padding] == 0);
  REQUIRE(values[14] == 1);
  REQUIRE(b.value().at(6) == 2);
  REQUIRE(&store.find("c") == &c);
  REQUIRE_THROWS_WITH(store.find("frosen"), ContainsSubstring("nearest is frozen"));
  REQUIRE(store.find_or_null("frosen") == nullptr);
  REQUIRE(store.find_or_null("frozen") == &store.find("frozen"));
  REQUIRE_FALSE(frozen.value().requires_grad());
  REQUIRE(a.value().requires_grad());
  REQUIRE_THROWS_WITH(frozen.gradient(), ContainsSubstring("parameter frozen: is frozen and has no gradient"));
  REQUIRE_THROWS_WITH(store.freeze(a), ContainsSubstring("parameter a cannot be frozen after seal()"));
}

TEST_CASE("a store rejects parameters without a name or initializer, with a name in use, and after it is sealed") {
  ParameterStore store;
  store.add("a", {1}, init::constant(0));
  REQUIRE_THROWS_WITH(store.add("a", {1}, init::constant(0)), ContainsSubstring("a twice"));
  REQUIRE_THROWS_AS(store.add("", {1}, init::constant(0)), Error);
  REQUIRE_THROWS_WITH(store.add("b", {1}, {}), ContainsSubstring("parameter b needs an initializer"));
  ParameterStore other;
  Parameter& elsewhere = other.add("elsewhere", {1}, init::constant(0));
  REQUIRE_THROWS_WITH(store.freeze(elsewhere), ContainsSubstring("elsewhere belongs to another store"));
  REQUIRE(elsewhere.trainable());
  store.seal();
  REQUIRE_THROWS_AS(store.add("b", {1}, init::constant(0)), Error);
  REQUIRE_THROWS_AS(store.seal(), Error);
}

TEST_CASE("initial values are a function of seed, name and index alone") {
  const auto draw = [](std::uint64_t seed, bool other_first, const char* name) {
    ParameterStore store(DType::float64);
    if (other_first) store.add("other", {100}, init::normal(1));
    Parameter& p = store.add(name, {50}, init::normal(1));
    store.seal(seed);
    return std::vector<double>(p.value().values<double>().begin(), p.value().values<double>().end());
  };
  REQUIRE(draw(1, false, "x") == draw(1, true, "x"));
  REQUIRE(draw(1, false, "x") != draw(2, false, "x"));
  REQUIRE(draw(1, false, "x") != draw(1, false, "y"));
}

TEST_CASE(
    "a store sealed without drawing initial values has the layout of one that drew them, and accepts its values") {
  const auto filled = [](ParameterStore& store) -> Parameter& {
    store.add("a", {3, 5}, init::normal(1));
    return store.add("b", {7}, init::normal(1));
  };
  ParameterStore drawn, loaded;
  const Parameter& b = filled(drawn);
  const Parameter& same = filled(loaded);
  drawn.seal(1);
  loaded.seal_uninitialized();
  REQUIRE(loaded.values().numel() == drawn.values().numel());
  REQUIRE((same.offset() == b.offset() && same.value().requires_grad()));
  std::ranges::copy(drawn.values().values<float>(), loaded.values().data<float>());
  REQUIRE(std::ranges::equal(same.value().values<float>(), b.value().values<float>()));
  REQUIRE(loaded.gradients().numel() == drawn.gradients().numel());
  REQUIRE_THROWS_AS(loaded.seal(1), Error);
}

TEST_CASE("gradients that nothing has written are zero, also in a fresh buffer, and padding stays zero") {
  storage_pool::fill_new_blocks(0xFF);
  ParameterStore store(DType::float32);
  Parameter& a = store.add("a", {3}, init::constant(1));
  Parameter& b = store.add("b", {3}, init::constant(1));
  store.seal();
  a.gradient_buffer().data<float>()[0] = a.gradient_buffer().data<float>()[1] = a.gradient_buffer().data<float>()[2] =
      4;
  a.gradient_written() = true;
  REQUIRE(a.gradient().at(2) == 4);
  REQUIRE(b.gradient().at(0) == 0);
  const Tensor taken = store.take_gradients();
  storage_pool::fill_new_blocks(std::nullopt);
  REQUIRE(taken.numel() == 32);
  for (std::int64_t i = 0; i < 32; ++i) REQUIRE(taken.at(i) == (i < 3 ? 4 : 0));
  REQUIRE(a.gradient().at(0) == 0);
  for (std::int64_t i = 0; i < 32; ++i) REQUIRE(store.gradients().at(i) == 0);
  store.set_gradients(taken);
  REQUIRE(a.gradient().at(0) == 4);
  REQUIRE_THROWS_AS(store.set_gradients(zeros({3}, DType::float32)), Error);
}

namespace {

// Requires that seal() throws (it must not abort) and that the store is still unsealed afterwards.
void require_seal_fails(ParameterStore& store, const std::string& message) {
  REQUIRE_THROWS_WITH(store.seal(), ContainsSubstring(message));
  REQUIRE_FALSE(store.sealed());
  REQUIRE_THROWS_WITH(store.parameters().front()->value(), ContainsSubstring("seal"));
  REQUIRE_THROWS_WITH(store.gradients(), ContainsSubstring("not sealed"));
  REQUIRE_THROWS_WITH(store.values(), ContainsSubstring("not sealed"));
  REQUIRE_THROWS_WITH(std::as_const(store).values(), ContainsSubstring("not sealed"));
}

}  // namespace

TEST_CASE("a store whose initial values cannot be drawn stays unsealed and can be sealed later") {
  ParameterStore store;
  bool failing = true;
  store.add("first", {4}, init::constant(1));
  store.add("bad", {300, 300}, [&](const RandomStream&, std::uint64_t index) {
    check(!failing || index < 50000, "element {} cannot be drawn", index);
    return 2.0;
  });
  require_seal_fails(store, "cannot be drawn");
  store.add("late", {4}, init::constant(3));
  failing = false;
  store.seal();
  REQUIRE(store.find("first").value().at(3) == 1);
  REQUIRE(store.find("bad").value().at(89999) == 2);
  REQUIRE(store.find("late").value().at(0) == 3);
}

TEST_CASE("a store without memory for its values, or with too many of them, stays unsealed") {
  ParameterStore large;
  large.add("large", {std::int64_t{1} << 50}, init::constant(1));
  require_seal_fails(large, "a tensor needs 4503599627370496 bytes");
  ParameterStore larger;
  for (int i = 0; i < 40; ++i) larger.add("part." + std::to_string(i), {std::int64_t{1} << 57}, init::constant(1));
  require_seal_fails(larger, "part.1 of shape [144115188075855872]");
}

TEST_CASE("a store takes over a block of values, whose owner lives as long as a handle") {
  alignas(64) static float memory[48] = {};
  memory[34] = 3;
  const auto owner = std::make_shared<int>(0);
  const auto block = [&](std::int64_t size, DType dtype = DType::float32) {
    return Tensor(Storage(reinterpret_cast<std::byte*>(memory), owner), 0, {size}, dtype);
  };
  {
    ParameterStore store;
    Parameter& a = store.add("a", {3}, init::constant(7));  // after b, which has two axes
    store.add("b", {16, 2}, init::constant(7));
    const char* const rule = "values must be float32 of shape [48]";
    REQUIRE(contains(error_message<Error>([&] { store.seal_with_values(block(47)); }), rule));
    REQUIRE(contains(error_message<Error>([&] { store.seal_with_values(block(48, DType::int32)); }), rule));
    REQUIRE(contains(error_message<Error>([&] { store.seal_with_values({}); }), rule));
    REQUIRE_FALSE(store.sealed());
    store.seal_with_values(block(48));
    REQUIRE(owner.use_count() == 2);
    REQUIRE(a.value().at(2) == 3);
    store.values().data<float>()[34] = 4;
    REQUIRE(memory[34] == 4);
    REQUIRE(error_message<Error>([&] { store.seal_with_values(block(48)); }) ==
            "parameters: the store is sealed already");
  }
  REQUIRE(owner.use_count() == 1);
  REQUIRE(
      contains(error_message<Error>([&] { Storage(reinterpret_cast<std::byte*>(memory + 1), owner); }), "64 bytes"));
}
