#include "nn/short_conv.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/check.h"
#include "nn/generate/kv_cache.h"

namespace maki {
namespace {

// 1 for the token itself, random numbers for the others. If these began at 0, a model would have to find out first
// that they are of use, which costs more than half of what the convolution brings in a short run (docs/learning.md).
Initializer initial_taps(std::int64_t n_embd, std::int64_t width, std::int64_t ahead) {
  const double std = 1 / std::sqrt(static_cast<double>(width - 1));
  const auto own = static_cast<std::uint64_t>(ahead), columns = static_cast<std::uint64_t>(n_embd);
  return [std, own, columns](const RandomStream& stream, std::uint64_t index) {
    return index / columns == own ? 1.0 : std * stream.normal(index);
  };
}

std::int64_t checked(std::int64_t width) {
  check(width >= 2 && width <= kMaxConvWidth, "conv_width: must be between 2 and {} tokens; got {}", kMaxConvWidth,
        width);
  return width;
}

}  // namespace

ShortConv::ShortConv(const Scope& scope, std::int64_t n_embd, std::int64_t width, bool causal)
    : ahead(causal ? 0 : width / 2),
      weight(scope.undecayed("weight", {checked(width), n_embd}, initial_taps(n_embd, width, ahead))) {}

Tensor ShortConv::operator()(const Tensor& x, Tensor* recent) const {
  if (recent == nullptr) return short_conv(x, weight, ahead);
  Tensor y = short_conv(x, weight, ahead, *recent);
  const Tensor all = *recent ? concat({*recent, x}, 1) : x;
  const std::int64_t held = all.shape()[1], kept = std::min(held, weight.shape()[0] - 1);
  *recent = slice(all, 1, held - kept, held);
  return y;
}

void RecentInputs::reorder(std::span<const std::int32_t> rows) {
  if (attention) attention = rows_of(attention, rows);
  if (feed_forward) feed_forward = rows_of(feed_forward, rows);
}

}  // namespace maki
