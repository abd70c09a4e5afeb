#include "autograd/core/shape.h"

#include <limits>

#include "autograd/core/check.h"
#include "tests/catch.h"

using maki::Shape;

TEST_CASE("a shape knows its extents, elements, rows and columns") {
  const Shape shape{2, 3, 4};
  REQUIRE(shape.rank() == 3);
  REQUIRE(shape[-1] == 4);
  REQUIRE(shape.numel() == 24);
  REQUIRE(shape.rows() == 6);
  REQUIRE(shape.cols() == 4);
  REQUIRE(Shape{}.numel() == 1);
  REQUIRE(Shape{}.rows() == 1);
  REQUIRE(Shape{}.cols() == 1);
  REQUIRE(Shape{3, 0}.numel() == 0);
  REQUIRE(Shape{3, 0}.rows() == 3);
  REQUIRE(to_string(shape) == "[2, 3, 4]");
  REQUIRE(shape.with(-1, 7) == Shape{2, 3, 7});
  REQUIRE_FALSE(Shape{2, 3} == Shape{2, 3, 1});
}

TEST_CASE("a shape rejects extents that it cannot represent") {
  const std::int64_t big = std::int64_t{1} << 31;
  REQUIRE_THROWS_AS((Shape{1, 2, 3, 4, 5, 6}), maki::Error);
  REQUIRE_THROWS_AS((Shape{-1}), maki::Error);
  REQUIRE_THROWS_AS((Shape{big, big}), maki::Error);
  REQUIRE_THROWS_AS((Shape{0, big, big}), maki::Error);
  REQUIRE(Shape{Shape::kMaxElements - 1}.numel() == Shape::kMaxElements - 1);
  REQUIRE_THROWS_AS((Shape{Shape::kMaxElements}), maki::Error);
  REQUIRE_THROWS_AS((Shape{2}[1]), maki::Error);
  REQUIRE_THROWS_AS((Shape{2}[-2]), maki::Error);
}

TEST_CASE("a shape rejects extents whose product does not fit into 64 bits") {
  // Modulo 2^64 the first two products are 0 and the third is negative, all of which are below the limit.
  const std::int64_t big = std::int64_t{1} << 32, most = std::numeric_limits<std::int64_t>::max();
  const auto refused = ContainsSubstring("shape: the product of the non-zero extents must be below 2^58; got [");
  REQUIRE_THROWS_WITH((Shape{big, big}), refused);
  REQUIRE_THROWS_WITH((Shape{0, big, big}), refused);
  REQUIRE_THROWS_WITH((Shape{Shape::kMaxElements - 1, 128}), refused);
  REQUIRE_THROWS_WITH((Shape{big, big, big}), refused);
  REQUIRE_THROWS_WITH((Shape{2, most}), refused);
  REQUIRE_THROWS_WITH((Shape{most}), refused);
}

TEST_CASE("broadcasting follows NumPy") {
  REQUIRE(broadcast("add", Shape{2, 1, 4}, Shape{3, 1}) == Shape{2, 3, 4});
  REQUIRE(broadcast("add", Shape{}, Shape{3}) == Shape{3});
  REQUIRE(broadcast("add", Shape{0, 3}, Shape{1, 3}) == Shape{0, 3});
  REQUIRE_THROWS_WITH(broadcast("add", Shape{2, 3}, Shape{2}), ContainsSubstring("[2, 3] and [2]"));
}
