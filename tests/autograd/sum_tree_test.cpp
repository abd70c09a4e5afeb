// The sum of a tree has one order, however its terms are divided among ranges.
#include "autograd/core/sum_tree.h"

#include <string>

#include "tests/catch.h"

using namespace maki;

namespace {

std::string sum_of(const std::string& left, const std::string& right) { return "(" + left + "+" + right + ")"; }

SumTree<std::string> tree_of(std::int64_t begin, std::int64_t end) {
  SumTree<std::string> tree;
  tree.begin(begin);
  for (std::int64_t i = begin; i < end; ++i) tree.push(std::to_string(i), sum_of);
  return tree;
}

}  // namespace

TEST_CASE("a sum tree adds neighbours first, and what is left over last") {
  REQUIRE(tree_of(0, 1).total(sum_of) == "0");
  REQUIRE(tree_of(0, 4).total(sum_of) == "((0+1)+(2+3))");
  REQUIRE(tree_of(0, 7).total(sum_of) == "(((0+1)+(2+3))+((4+5)+6))");
}

TEST_CASE("the roots of ranges, added in order, give the sum over all terms") {
  for (std::int64_t terms = 1; terms <= 20; ++terms) {
    const std::string expected = tree_of(0, terms).total(sum_of);
    for (std::int64_t first = 0; first <= terms; ++first) {
      for (std::int64_t second = first; second <= terms; ++second) {
        SumTree<std::string> whole;
        const std::int64_t bounds[] = {0, first, second, terms};
        for (int part = 0; part < 3; ++part) {
          const SumTree<std::string> range = tree_of(bounds[part], bounds[part + 1]);
          for (const auto& root : range.roots()) whole.push(root.sum, sum_of, root.level);
        }
        REQUIRE(whole.total(sum_of) == expected);
      }
    }
  }
}

TEST_CASE("a range has at most two subtrees of a level") {
  for (std::int64_t begin = 0; begin < 40; ++begin) {
    for (std::int64_t end = begin; end < 80; ++end) {
      int count[8] = {};
      const SumTree<std::string> range = tree_of(begin, end);
      for (const auto& root : range.roots()) REQUIRE(++count[root.level] <= (begin == 0 ? 1 : 2));
    }
  }
}
