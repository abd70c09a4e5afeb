// Ops that choose: max, argmax, gather, where, clamp, one_hot and stack. Ties, NaN, sizes beyond one block, messages.
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/core/parallel.h"
#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"
#include "tests/threads.h"

using namespace maki;
using namespace maki::tests;

namespace {

// The gradient of one input for a cotangent of ones.
Tensor gradient(const Tensor& x, const std::function<Tensor(const Tensor&)>& op) {
  Tape tape;
  Tensor watched;
  const Tensor y = [&] {
    const Recording on(tape);
    return op(watched = tape.watch(x));
  }();
  tape.backward(y, full(y.shape(), y.dtype(), 1));
  return tape.gradient(watched);
}

std::vector<double> numbers(const Tensor& x) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < x.numel(); ++i) list.push_back(x.at(i));
  return list;
}
using List = std::vector<double>;

}  // namespace

TEST_CASE("max and argmax choose the first of equal elements, or a NaN, and only that element has a gradient") {
  struct Expected {
    List x;
    double place;
  };
  for (const Expected& e : std::vector<Expected>{{{1, 3, 2}, 1},
                                                 {{3, 1, 3}, 0},
                                                 {{-kInf, -kInf}, 0},
                                                 {{1, kNaN, kInf, kNaN}, 1},
                                                 {{kNaN, 5}, 0},
                                                 {{0.0, -0.0}, 0},
                                                 {{-0.0, 0.0}, 0},
                                                 {{7}, 0}}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const Tensor x = convert(tensor(e.x, {static_cast<std::int64_t>(e.x.size())}), dtype);
      const Tensor place = argmax(x), largest = max(x, 0, true);
      REQUIRE(place.dtype() == DType::int32);
      REQUIRE(place.item() == e.place);
      REQUIRE(largest.shape() == Shape{1});
      const double expected = e.x[static_cast<std::size_t>(e.place)];
      REQUIRE((largest.item() == expected || std::isnan(expected)));
      REQUIRE(std::isnan(largest.item()) == std::isnan(expected));
      const Tensor dx = gradient(x, [](const Tensor& v) { return max(v); });
      for (std::int64_t i = 0; i < dx.numel(); ++i) REQUIRE(dx.at(i) == (static_cast<double>(i) == e.place ? 1 : 0));
    }
  }
}

TEST_CASE("max along any axis of a large tensor, and its gradient, as written out plainly") {
  Draw draw(2);
  Tensor wide = draw.uniforms({7, 130, 90}, -40, 40);
  for (double& value : wide.values<double>()) value = std::trunc(value);  // many ties
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t extent = wide.shape()[axis], inner = axis == 2 ? 1 : axis == 1 ? 90 : 130 * 90;
    const Tensor y = max(wide, axis), place = argmax(wide, axis);
    const Tensor dx = gradient(wide, [=](const Tensor& v) { return max(v, axis); });
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < y.numel(); ++k) {
      const std::int64_t begin = k / inner * extent * inner + k % inner;
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < extent; ++i) {
        if (wide.at(begin + i * inner) > wide.at(begin + best * inner)) best = i;
      }
      wrong += place.at(k) != static_cast<double>(best) || y.at(k) != wide.at(begin + best * inner);
      for (std::int64_t i = 0; i < extent; ++i) wrong += dx.at(begin + i * inner) != (i == best ? 1 : 0);
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("gather takes elements along an axis, and its gradient counts how often") {
  const Tensor x = tensor<double>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor columns = tensor<std::int32_t>({2, 2, 0, 1, 1, 1}, {2, 3});
  REQUIRE(numbers(gather(x, 1, columns)) == List{3, 3, 1, 5, 5, 5});
  REQUIRE(numbers(gradient(x, [&](const Tensor& v) { return gather(v, -1, columns); })) == List{1, 0, 2, 0, 3, 0});
  const Tensor rows = tensor<std::int32_t>({0, 1, 0}, {1, 3});
  REQUIRE(numbers(gather(x, 0, rows)) == List{1, 5, 3});
  REQUIRE(numbers(gradient(x, [&](const Tensor& v) { return gather(v, 0, rows); })) == List{1, 0, 1, 0, 1, 0});
  REQUIRE_THROWS_WITH(gather(x, 0, columns.slice_flat(0, {3})), ContainsSubstring("got x [2, 3] and ids [3]"));
  REQUIRE_THROWS_WITH(gather(x, 1, zeros({3, 3}, DType::int32)), ContainsSubstring("got x [2, 3] and ids [3, 3]"));
  REQUIRE_THROWS_WITH(gather(x, 0, columns), ContainsSubstring("[0, 2)") && ContainsSubstring("got 2 at index 0"));
  REQUIRE_THROWS_WITH(gather(x, 1, x), ContainsSubstring("ids must be int32; got float64"));
}

TEST_CASE("where keeps the sign of zero, and elements that it does not choose have no influence, even if NaN") {
  const Tensor mask = tensor<std::int32_t>({1, 0, -7, 0}, {4});
  const Tensor a = tensor<double>({-0.0, kNaN, 3, kInf}, {4}), b = tensor<double>({kNaN, -0.0, kInf, 4}, {4});
  const Tensor y = where(mask, a, b);
  REQUIRE(numbers(y) == List{0, 0, 3, 4});
  REQUIRE(std::signbit(y.at(0)));
  REQUIRE(std::signbit(y.at(1)));
  REQUIRE(numbers(gradient(a, [&](const Tensor& v) { return where(mask, v, b); })) == List{1, 0, 1, 0});
  REQUIRE(numbers(gradient(b, [&](const Tensor& v) { return where(mask, a, v); })) == List{0, 1, 0, 1});
  const Tensor number = full({}, DType::float64, 9);
  REQUIRE(numbers(where(reshape(mask, {4, 1}), number, full({2}, DType::float64, 1))) == List{9, 9, 1, 1, 9, 9, 1, 1});
  REQUIRE(gradient(number, [&](const Tensor& v) { return where(mask, v, b); }).item() == 2);
  REQUIRE_THROWS_WITH(where(a, a, b), ContainsSubstring("the mask must be int32; got float64"));
  REQUIRE_THROWS_WITH(where(mask, a, zeros({3}, DType::float64)), ContainsSubstring("[4] and [3]"));
  REQUIRE_THROWS_WITH(where(mask, mask, mask), ContainsSubstring("float32 or float64"));
}

TEST_CASE("where, clamp and one_hot on sizes that are distributed over threads") {
  const ThreadsScope scope(8);
  Draw draw(4);
  const Tensor x = draw.normals({300, 700}), mask = draw.integers({300, 1}, 0, 1), row = draw.normals({700});
  const Tensor y = where(mask, x, row), z = clamp(reshape(x, {-1}), -0.25, 0.5);
  const Tensor dx = gradient(x, [&](const Tensor& v) { return where(mask, clamp(v, -0.25, 0.5), row); });
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const bool chosen = mask.at(i / 700) != 0, inside = x.at(i) >= -0.25 && x.at(i) <= 0.5;
    wrong += y.at(i) != (chosen ? x.at(i) : row.at(i % 700));
    wrong += z.at(i) != std::min(0.5, std::max(-0.25, x.at(i)));
    wrong += dx.at(i) != (chosen && inside ? 1 : 0);
  }
  const Tensor ids = draw.integers({5000}, 0, 49), ones = one_hot(ids, 50);
  for (std::int64_t i = 0; i < ones.numel(); ++i) {
    wrong += ones.at(i) != (ids.at(i / 50) == static_cast<double>(i % 50) ? 1 : 0);
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("one_hot creates a row for each id, and stack a new axis for its parts") {
  const Tensor y = one_hot(tensor<std::int32_t>({2, 0}, {1, 2}), 3, DType::float64);
  REQUIRE(y.shape() == Shape{1, 2, 3});
  REQUIRE(y.dtype() == DType::float64);
  REQUIRE(numbers(y) == List{0, 0, 1, 1, 0, 0});
  REQUIRE(one_hot(tensor<std::int32_t>({1}, {1}), 2).dtype() == DType::float32);

  const Tensor a = tensor<double>({1, 2}, {2}), b = tensor<double>({3, 4}, {2});
  REQUIRE(stack({a, b}).shape() == Shape{2, 2});
  REQUIRE(numbers(stack({a, b})) == List{1, 2, 3, 4});
  REQUIRE(numbers(stack({a, b}, -1)) == List{1, 3, 2, 4});
  REQUIRE(stack({a, b, a}, 1).shape() == Shape{2, 3});
  REQUIRE(stack({full({}, DType::float32, 1)}).shape() == Shape{1});
}

TEST_CASE("ops that choose reject impossible arguments with messages that contain the values") {
  const Tensor x = zeros({2, 0}, DType::float32), five = zeros({1, 1, 1, 1, 1}, DType::float32);
  REQUIRE_THROWS_WITH(max(x, 1),
                      ContainsSubstring("max: the axis must have 1 to") && ContainsSubstring("axis 1 of [2, 0]"));
  REQUIRE_THROWS_WITH(argmax(x, -1), ContainsSubstring("argmax: the axis must"));
  REQUIRE_THROWS_AS(max(x, 2), Error);
  REQUIRE_THROWS_WITH(max(zeros({3}, DType::int32)), ContainsSubstring("int32"));
  REQUIRE_THROWS_WITH(clamp(x, 1, 0), ContainsSubstring("low must not be above high; got 1 and 0"));
  REQUIRE_THROWS_WITH(clamp(x, kNaN, 0), ContainsSubstring("got nan and 0"));
  const Tensor ids = tensor<std::int32_t>({3}, {1});
  REQUIRE_THROWS_WITH(one_hot(ids, 3), ContainsSubstring("[0, 3)") && ContainsSubstring("got 3 at index 0"));
  REQUIRE_THROWS_WITH(one_hot(ids, -1), ContainsSubstring("got -1"));
  REQUIRE_THROWS_WITH(one_hot(ids, 4, DType::int32), ContainsSubstring("got int32"));
  REQUIRE_THROWS_WITH(one_hot(x, 4), ContainsSubstring("ids must be int32; got float32"));
  REQUIRE_THROWS_WITH(stack({}), ContainsSubstring("1 to 64 parts; got 0"));
  REQUIRE_THROWS_WITH(stack({x, x}, 3), ContainsSubstring("[-3, 2]") && ContainsSubstring("got axis 3 for [2, 0]"));
  REQUIRE_THROWS_WITH(stack({five}), ContainsSubstring("at most 4 axes"));
  REQUIRE_THROWS_WITH(stack({x, five}), ContainsSubstring("got [2, 0] and [1, 1, 1, 1, 1]"));
}
