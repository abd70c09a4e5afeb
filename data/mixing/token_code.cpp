#include "data/mixing/token_code.h"

#include <algorithm>

namespace maki {
namespace {

// A stretch of the order that is still to be divided, and whose child it becomes.
struct Stretch {
  std::size_t begin, end;
  Decision parent;
};

// Where the two parts of a stretch differ least. `sums` are those of the weights before each place.
std::size_t middle(std::span<const std::int64_t> sums, std::size_t begin, std::size_t end) {
  const std::int64_t twice = sums[begin] + sums[end];  // of the sum in the middle
  const auto first = sums.begin() + static_cast<std::ptrdiff_t>(begin) + 1;
  const auto last = sums.begin() + static_cast<std::ptrdiff_t>(end) - 1;
  auto at = std::lower_bound(first, last, twice, [](std::int64_t sum, std::int64_t goal) { return 2 * sum < goal; });
  if (at != first && twice - 2 * at[-1] < 2 * *at - twice) --at;
  return static_cast<std::size_t>(at - sums.begin());
}

}  // namespace

std::vector<std::int64_t> token_counts(std::span<const std::int32_t> ids, std::int64_t vocab_size) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocab_size));
  for (const std::int32_t id : ids) ++counts[static_cast<std::size_t>(id)];
  return counts;
}

TokenCode::TokenCode(std::span<const std::int64_t> counts, std::span<const std::int32_t> order)
    : order_(order.begin(), order.end()), stretches_(2 * order.size() - 1) {
  std::vector<std::int64_t> sums = {0};
  for (const std::int32_t id : order) sums.push_back(sums.back() + counts[static_cast<std::size_t>(id)] + 1);
  std::vector<Decision> of_token(counts.size(), {-1, false}), of_node;  // the decision that leads to it, or node −1
  std::vector<Stretch> open = {{0, order.size(), {-1, false}}};
  while (!open.empty()) {
    const Stretch stretch = open.back();
    open.pop_back();
    const bool leaf = stretch.end - stretch.begin == 1;
    const std::int32_t child = leaf ? order[stretch.begin] : static_cast<std::int32_t>(order.size()) + nodes();
    stretches_[static_cast<std::size_t>(child)] = {stretch.begin, stretch.end};
    if (stretch.parent.node >= 0)
      children_[static_cast<std::size_t>(stretch.parent.node)][stretch.parent.bit ? 1 : 0] = child;
    if (leaf) {
      of_token[static_cast<std::size_t>(child)] = stretch.parent;
      continue;
    }
    const std::size_t at = middle(sums, stretch.begin, stretch.end);
    open.push_back({at, stretch.end, {nodes(), true}});
    open.push_back({stretch.begin, at, {nodes(), false}});
    of_node.push_back(stretch.parent);
    groups_.push_back(group_of(stretch.parent));
    children_.push_back({});
  }
  begin_.push_back(0);
  for (const Decision& last : of_token) {
    for (Decision at = last; at.node >= 0; at = of_node[static_cast<std::size_t>(at.node)]) decisions_.push_back(at);
    std::reverse(decisions_.begin() + static_cast<std::ptrdiff_t>(begin_.back()), decisions_.end());
    begin_.push_back(decisions_.size());
  }
}

// Of the next node, which a decision leads to.
TokenCode::Group TokenCode::group_of(const Decision& parent) const {
  constexpr std::uint16_t kLastLevel = 4;  // members 4 to 7 are the last of a group
  if (parent.node < 0 || group(parent.node).member >= kLastLevel) return {nodes(), 1};
  const auto [first, member] = group(parent.node);
  return {first, static_cast<std::uint16_t>(2 * member + (parent.bit ? 1 : 0))};
}

std::span<const std::int32_t> TokenCode::tokens_below(std::int32_t child) const {
  const auto [begin, end] = stretches_[static_cast<std::size_t>(child)];
  return std::span(order_).subspan(begin, end - begin);
}

void TokenCode::sum_branches(std::span<const float> probabilities, BranchSums& sums) const {
  sums.resize(children_.size());
  const auto below = [&](std::int32_t child) {
    if (child < vocab_size()) return static_cast<double>(probabilities[static_cast<std::size_t>(child)]);
    const std::array<double, 2>& branches = sums[static_cast<std::size_t>(child - vocab_size())];
    return branches[0] + branches[1];
  };
  for (std::size_t node = children_.size(); node-- > 0;)
    sums[node] = {below(children_[node][0]), below(children_[node][1])};
}

}  // namespace maki
