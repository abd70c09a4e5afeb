#include "data/dataset/masking.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "autograd/core/check.h"
#include "data/dataset/window_batches.h"

namespace maki {

std::int64_t masked_count(std::int64_t tokens, std::int64_t percent) {
  return std::max<std::int64_t>(1, (percent * tokens + 50) / 100);
}

void mask_tokens(const RandomStream& stream, std::int64_t row, std::int64_t vocab_size, std::int64_t count,
                 std::span<std::int32_t> ids, std::span<std::int32_t> targets) {
  check(!ids.empty() && ids.size() == targets.size(),
        "masking: ids and targets must have the same length; got {} and {}", ids.size(), targets.size());
  check(count >= 0 && count <= std::ssize(ids), "masking: at most {} tokens can be predicted; got {}", ids.size(),
        count);
  const std::uint64_t tokens = ids.size(), first = 3 * tokens * static_cast<std::uint64_t>(row);
  const auto chosen = static_cast<std::uint64_t>(count);
  std::ranges::fill(targets, kIgnoredTarget);
  std::vector<std::size_t> positions(tokens);  // the first i are chosen: the shuffle of Fisher and Yates
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  for (std::uint64_t i = 0; i < chosen; ++i) {
    std::swap(positions[i], positions[i + stream.below(first + i, tokens - i)]);
    const std::size_t at = positions[i];
    targets[at] = ids[at];
    const std::uint64_t tenth = stream.below(first + tokens + i, 10);
    if (tenth < 8) {
      ids[at] = static_cast<std::int32_t>(vocab_size);
    } else if (tenth == 8) {
      const auto any = stream.below(first + 2 * tokens + i, static_cast<std::uint64_t>(vocab_size));
      ids[at] = static_cast<std::int32_t>(any);
    }
  }
}

}  // namespace maki
