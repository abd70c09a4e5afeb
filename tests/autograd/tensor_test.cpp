#include "autograd/tensor.h"

#include <cmath>
#include <limits>
#include <thread>

#include "autograd/core/check.h"
#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "tests/catch.h"

using namespace maki;

TEST_CASE("copies of a tensor share one block") {
  const Tensor a = tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = a;
  REQUIRE(b.data<float>() == a.data<float>());
  REQUIRE(a.at(4) == 5);
  REQUIRE(a.at(0) == 1);
  REQUIRE_THROWS_WITH(a.at(6), ContainsSubstring("the index must be in [0, 6); got 6"));
  REQUIRE_THROWS_WITH(a.at(-1), ContainsSubstring("got -1"));
  REQUIRE(a.slice_flat(3, {3}).at(2) == 6);
  REQUIRE_THROWS_WITH(a.slice_flat(4, {3}), ContainsSubstring("3 elements from 4 on must lie in [0, 6)"));
  REQUIRE_THROWS_WITH(a.slice_flat(-1, {3}), ContainsSubstring("3 elements from -1 on must lie in [0, 6)"));
  REQUIRE_THROWS_AS(a.slice_flat(std::numeric_limits<std::int64_t>::max(), {1}), Error);
  REQUIRE_THROWS_WITH(tensor<float>({1, 2, 3}, {2, 2}), ContainsSubstring("shape [2, 2] has 4 elements; got 3"));
  REQUIRE_THROWS_WITH(a.data<double>(), ContainsSubstring("float32"));
  REQUIRE_THROWS_AS(a.item(), Error);
  REQUIRE_THROWS_AS(Tensor().data<float>(), Error);
  REQUIRE(full({}, DType::float64, 2.5).item() == 2.5);
  REQUIRE(convert(a, DType::float64).at(5) == 6);
}

TEST_CASE("a clone has its own block, the same elements and no gradient link") {
  ParameterStore store;
  const Parameter& parameter = store.add("x", {2, 3}, init::normal(1));
  store.seal();
  const Tensor& x = parameter.value();
  Tensor copy = x.clone();
  REQUIRE(copy.shape() == x.shape());
  REQUIRE_FALSE(copy.requires_grad());
  REQUIRE_FALSE(copy.shared());
  for (std::int64_t i = 0; i < x.numel(); ++i) REQUIRE(copy.at(i) == x.at(i));
  const double before = x.at(4);
  copy.data<float>()[4] = 77;
  REQUIRE(x.at(4) == before);

  const Tensor ids = tensor<std::int32_t>({5, 6, 7, 8}, {4});
  REQUIRE(ids.slice_flat(1, {2}).clone().at(1) == 7);
  REQUIRE(zeros({0, 3}, DType::float64).clone().shape() == Shape{0, 3});
  REQUIRE_FALSE(static_cast<bool>(Tensor().clone()));
}

TEST_CASE("reshape shares the block and infers one extent") {
  const Tensor a = zeros({2, 3, 4}, DType::float32);
  REQUIRE(reshape(a, {6, -1}).shape() == Shape{6, 4});
  REQUIRE(reshape(a, {24}).data<float>() == a.data<float>());
  REQUIRE_THROWS_WITH(reshape(a, {5, -1}), ContainsSubstring("24 elements"));
  REQUIRE_THROWS_AS(reshape(a, {-1, -1}), Error);
  REQUIRE_THROWS_AS(reshape(a, {5, 5}), Error);
  REQUIRE_THROWS_WITH(reshape(zeros({0, 3}, DType::float32), {0, -1}), ContainsSubstring("extent of 0"));
  REQUIRE_THROWS_WITH(reshape(a, {-1, -1, 24}), ContainsSubstring("got 2 of them"));
  REQUIRE_THROWS_WITH(reshape(a, {2, 3, 4, 1, 1, 1}), ContainsSubstring("at most 5 dimensions; got 6"));
  REQUIRE_THROWS_WITH(reshape(a, {2, 3, 4, 1, 1, -1}), ContainsSubstring("at most 5 dimensions; got 6"));
  REQUIRE_THROWS_AS(reshape(a, {5, 4}), Error);
}

TEST_CASE("freed blocks are reused, whichever thread frees them") {
  std::vector<Tensor> warm;
  for (int i = 0; i < 4; ++i) warm.push_back(empty({1000}, DType::float64));
  warm.clear();
  const auto before = storage_pool::statistics();
  for (int round = 0; round < 10; ++round) {
    Tensor x = empty({1000}, DType::float64);
    std::thread([moved = std::move(x)] {}).join();
  }
  const auto after = storage_pool::statistics();
  REQUIRE(after.bytes_reserved == before.bytes_reserved);
  REQUIRE(after.bytes_in_use == before.bytes_in_use);
}

TEST_CASE("blocks of every size are aligned, large enough and not wasteful") {
  for (std::int64_t bytes = 1; bytes < (std::int64_t{1} << 24); bytes += 1 + bytes / 3) {
    const auto before = storage_pool::statistics().bytes_in_use;
    const Storage block(bytes);
    const auto taken = storage_pool::statistics().bytes_in_use - before;
    REQUIRE(taken >= bytes);
    REQUIRE(taken <= std::max(bytes + bytes / 8 + 64, bytes + 64));
    REQUIRE(reinterpret_cast<std::uintptr_t>(block.data()) % 64 == 0);
    block.data()[0] = block.data()[bytes - 1] = std::byte{1};
  }
}
