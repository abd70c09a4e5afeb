// The sum of the gradients of micro-batches has the order of a binary tree over their indices, bit for bit.
#include "train/loop/gradient_tree.h"

#include <bit>
#include <vector>

#include "autograd/core/philox.h"
#include "tests/catch.h"

using namespace maki;

namespace {

constexpr std::int64_t kElements = 37;

std::vector<float> drawn(std::uint64_t micro_batch) {
  const RandomStream stream(5, RandomPurpose::test, micro_batch);
  std::vector<float> values;
  for (std::uint64_t i = 0; i < kElements; ++i) values.push_back(static_cast<float>(stream.normal(i)));
  return values;
}

// The size of the left half is the largest power of two that is smaller than the whole.
std::vector<float> pairwise_sum(const std::vector<std::vector<float>>& terms, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return terms[begin];
  const std::size_t middle = begin + std::bit_floor(end - begin - 1);
  std::vector<float> sum = pairwise_sum(terms, begin, middle);
  const std::vector<float> right = pairwise_sum(terms, middle, end);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

}  // namespace

TEST_CASE("the gradient tree is the pairwise sum of 1 to 9 gradients, bit for bit") {
  GradientTree tree;  // used for all sums: it must be empty after each
  std::vector<std::vector<float>> terms;
  for (std::size_t n = 1; n <= 9; ++n) {
    INFO(n << " gradients");
    terms.push_back(drawn(n));
    for (const std::vector<float>& term : terms) tree.add(tensor(term, {kElements}));
    const Tensor sum = tree.take();
    const std::vector<float> expected = pairwise_sum(terms, 0, n);
    REQUIRE(std::vector<float>(sum.values<float>().begin(), sum.values<float>().end()) == expected);
    std::vector<float> sequential(kElements);
    for (const std::vector<float>& term : terms) {
      for (std::size_t i = 0; i < term.size(); ++i) sequential[i] += term[i];
    }
    if (n > 3) REQUIRE_FALSE(expected == sequential);
  }
}

TEST_CASE("a gradient tree that begins anew contains nothing of before") {
  GradientTree tree;
  for (std::uint64_t i = 0; i < 5; ++i) tree.add(tensor(drawn(i), {kElements}));
  tree.begin();
  REQUIRE_THROWS(tree.take());
  tree.add(tensor(drawn(7), {kElements}));
  const Tensor sum = tree.take();
  REQUIRE(std::vector<float>(sum.values<float>().begin(), sum.values<float>().end()) == drawn(7));
}
