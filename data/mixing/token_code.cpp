#include "data/mixing/token_code.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace maki {

TokenCode::TokenCode(std::span<const std::int64_t> counts) {
  using Weighted = std::pair<std::int64_t, std::int32_t>;  // how often, and a token or node
  std::priority_queue<Weighted, std::vector<Weighted>, std::greater<>> open;
  const auto tokens = static_cast<std::int32_t>(counts.size());
  for (std::int32_t id = 0; id < tokens; ++id) open.emplace(counts[static_cast<std::size_t>(id)] + 1, id);
  std::vector<Decision> parents(2 * counts.size());
  while (open.size() > 1) {
    const Weighted a = open.top();
    open.pop();
    const Weighted b = open.top();
    open.pop();
    const std::int32_t node = nodes();
    children_.push_back({a.second, b.second});
    parents[static_cast<std::size_t>(a.second)] = {node, false};
    parents[static_cast<std::size_t>(b.second)] = {node, true};
    open.emplace(a.first + b.first, tokens + node);
  }
  begin_.push_back(0);
  for (std::int32_t id = 0; id < tokens; ++id) {
    for (std::int32_t at = id; at != tokens + nodes() - 1; at = tokens + decisions_.back().node)
      decisions_.push_back(parents[static_cast<std::size_t>(at)]);
    std::reverse(decisions_.begin() + static_cast<std::ptrdiff_t>(begin_.back()), decisions_.end());
    begin_.push_back(decisions_.size());
  }
}

void TokenCode::sum_branches(std::span<const float> probabilities, BranchSums& sums) const {
  sums.resize(children_.size());
  const auto below = [&](std::int32_t child) {
    if (child < vocab_size()) return static_cast<double>(probabilities[static_cast<std::size_t>(child)]);
    const std::array<double, 2>& branches = sums[static_cast<std::size_t>(child - vocab_size())];
    return branches[0] + branches[1];
  };
  for (std::size_t node = 0; node < children_.size(); ++node)
    sums[node] = {below(children_[node][0]), below(children_[node][1])};
}

}  // namespace maki
