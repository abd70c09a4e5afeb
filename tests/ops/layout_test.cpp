// Sums, means, transposition, concat and slice against plain loops, beyond every block size, on every target.
#include <array>
#include <cmath>
#include <vector>

#include "autograd/core/parallel.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/simd/target.h"
#include "autograd/ops.h"
#include "tests/catch.h"
#include "tests/ops/op_case.h"

using namespace maki;
using namespace maki::tests;

namespace {

// Repeats the integers from −50 to 50, whose sums are exact in float32.
Tensor counting(const Shape& shape, DType dtype = DType::float32) {
  Tensor x = empty(shape, DType::float64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data<double>()[i] = static_cast<double>(i % 101 - 50);
  return convert(x, dtype);
}

// The index of element i along each axis of `shape`.
std::array<std::int64_t, Shape::kMaxRank> places(const Shape& shape, std::int64_t i) {
  std::array<std::int64_t, Shape::kMaxRank> place{};
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place[static_cast<std::size_t>(axis)] = i % shape[axis];
    i /= shape[axis];
  }
  return place;
}
std::int64_t flat(const Shape& shape, const std::array<std::int64_t, Shape::kMaxRank>& place) {
  std::int64_t i = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) i = i * shape[axis] + place[static_cast<std::size_t>(axis)];
  return i;
}

std::int64_t require_sum(const Tensor& x, std::uint32_t mask) {
  std::vector<int> axes;
  Shape kept = x.shape();
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if ((mask >> axis & 1) == 0) continue;
    axes.push_back(axis);
    kept = kept.with(axis, 1);
  }
  std::vector<double> expected(static_cast<std::size_t>(kept.numel()));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    auto place = places(x.shape(), i);
    for (const int axis : axes) place[static_cast<std::size_t>(axis)] = 0;
    expected[static_cast<std::size_t>(flat(kept, place))] += x.at(i);
  }
  if (axes.empty()) return 0;
  const Tensor y = sum(x, axes, true);
  REQUIRE(y.shape() == kept);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < y.numel(); ++i) wrong += y.at(i) != expected[static_cast<std::size_t>(i)];
  REQUIRE(wrong == 0);
  REQUIRE(same_bits(reshape(sum(x, axes), kept), y));
  return y.numel();
}

}  // namespace

TEST_CASE("sums over every set of axes, on every target") {
  std::int64_t compared = 0;
  for (const std::string& target : kernels::available_targets()) {
    kernels::force_target(target);
    for (const Shape& shape : {Shape{}, Shape{37}, Shape{5, 19}, Shape{3, 1, 17}, Shape{2, 3, 4, 9},
                               Shape{2, 3, 2, 3, 5}, Shape{3, 2, 1, 4, 33}}) {
      for (std::uint32_t mask = 0; mask < (1u << shape.rank()); ++mask) {
        for (const DType dtype : {DType::float32, DType::float64}) {
          INFO(target << " " << to_string(shape) << " axes " << mask);
          compared += require_sum(counting(shape, dtype), mask);
        }
      }
    }
  }
  kernels::force_target("");
  REQUIRE(compared > 1000);
}

TEST_CASE("sums over more elements than any block holds") {
  for (const Shape& shape :
       {Shape{100003}, Shape{200, 500}, Shape{3, 20001}, Shape{20001, 3}, Shape{30, 40, 60}, Shape{9, 30, 11, 10, 5}}) {
    for (std::uint32_t mask = 1; mask < (1u << shape.rank()); ++mask) {
      INFO(to_string(shape) << " axes " << mask);
      require_sum(counting(shape), mask);
    }
  }
}

TEST_CASE("a sum of a million float32 numbers is correctly rounded") {
  Tensor x = empty({1000, 1000}, DType::float32);
  const RandomStream stream(1, RandomPurpose::test);
  double exact = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] = 1000 + static_cast<float>(stream.uniform(static_cast<std::uint64_t>(i)));
    exact += static_cast<double>(x.data<float>()[i]);
  }
  REQUIRE(sum(x).item() == static_cast<double>(static_cast<float>(exact)));
  REQUIRE(mean(x).item() == static_cast<double>(static_cast<float>(exact / 1e6)));
}

TEST_CASE("a sum of many blocks has the same bits at every number of threads") {
  Draw draw(1);
  const Tensor x = convert(draw.normals({300, 700}), DType::float32);
  const int before = threads();
  set_threads(1);
  const Tensor all = sum(x), rows = sum(x, {1}), columns = sum(x, {0});
  for (const int n : {2, 3, 5, 8}) {
    set_threads(n);
    REQUIRE(same_bits(sum(x), all));
    REQUIRE(same_bits(sum(x, {1}), rows));
    REQUIRE(same_bits(sum(x, {0}), columns));
  }
  set_threads(before);
}

TEST_CASE("the mean of no elements is NaN, and their sum is 0") {
  REQUIRE(std::isnan(mean(zeros({0}, DType::float32)).item()));
  REQUIRE(sum(zeros({0}, DType::float32)).item() == 0);
  const Tensor columns = sum(zeros({0, 3}, DType::float64), {0});
  REQUIRE(columns.shape() == Shape{3});
  for (std::int64_t i = 0; i < 3; ++i) REQUIRE(columns.at(i) == 0);
}

TEST_CASE("axes of reductions: out of range and repeated axes are rejected") {
  const Tensor x = zeros({2, 3}, DType::float32);
  REQUIRE_THROWS_WITH(sum(x, {2}), ContainsSubstring("[-2, 2)"));
  REQUIRE_THROWS_WITH(mean(x, {1, -1}), ContainsSubstring("once"));
}

TEST_CASE("transposition of any two axes") {
  for (const Shape& shape : {Shape{1, 1}, Shape{33, 65}, Shape{100, 130}, Shape{4, 37, 41}, Shape{3, 5, 2, 34, 35},
                             Shape{2, 1, 7, 3}, Shape{40, 50, 8}}) {
    for (int a = 0; a < shape.rank(); ++a) {
      for (int b = -shape.rank(); b < shape.rank(); ++b) {
        INFO(to_string(shape) << " axes " << a << " " << b);
        const Tensor x = counting(shape), y = transpose(x, a, b);
        const auto first = static_cast<std::size_t>(a), second = static_cast<std::size_t>(shape.normalize(b));
        REQUIRE(y.shape() == shape.with(a, shape[b]).with(b, shape[a]));
        for (std::int64_t i = 0; i < x.numel(); i += 1 + x.numel() / 97) {
          auto place = places(shape, i);
          std::swap(place[first], place[second]);
          REQUIRE(y.at(flat(y.shape(), place)) == x.at(i));
        }
        REQUIRE(same_bits(transpose(y, a, b), x));
      }
    }
  }
  REQUIRE_THROWS_WITH(transpose(zeros({3}, DType::float32)), ContainsSubstring("axis"));
}

TEST_CASE("concat of slices gives the original along every axis") {
  for (const Shape& shape : {Shape{9}, Shape{7, 40}, Shape{5, 6, 33}, Shape{3, 4, 5, 6, 7}}) {
    const Tensor x = counting(shape);
    for (int axis = -shape.rank(); axis < shape.rank(); ++axis) {
      const std::int64_t extent = shape[axis], one = extent / 3, two = extent - 1;
      const Tensor parts[] = {slice(x, axis, 0, one), slice(x, axis, one, two), slice(x, axis, two, two),
                              slice(x, axis, two, extent)};
      REQUIRE(parts[1].shape() == shape.with(axis, two - one));
      auto place = places(parts[1].shape(), parts[1].numel() - 1);
      const double last = parts[1].at(parts[1].numel() - 1);
      place[static_cast<std::size_t>(shape.normalize(axis))] += one;
      REQUIRE(last == x.at(flat(shape, place)));
      REQUIRE(same_bits(concat(parts, axis), x));
    }
  }
}

TEST_CASE("concat and slice reject shapes, types and ranges that do not fit") {
  const Tensor x = zeros({2, 3}, DType::float32);
  REQUIRE_THROWS_WITH(concat(std::span<const Tensor>(), 0), ContainsSubstring("got 0"));
  REQUIRE_THROWS_WITH(concat({x, zeros({2, 4}, DType::float32)}, 0), ContainsSubstring("[2, 3] and [2, 4]"));
  REQUIRE_THROWS_WITH(concat({x, zeros({3}, DType::float32)}, 0), ContainsSubstring("[2, 3] and [3]"));
  REQUIRE_THROWS_WITH(concat({x, zeros({2, 3}, DType::float64)}, 0), ContainsSubstring("same type"));
  REQUIRE_THROWS_WITH(slice(x, 1, 2, 4), ContainsSubstring("got [2, 4)"));
  REQUIRE_THROWS_WITH(slice(x, 1, 2, 1), ContainsSubstring("got [2, 1)"));
}
