#include "nn/short_conv.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "nn/generate/kv_cache.h"

namespace maki {
namespace {

// 1 for the token itself, 0 for those before it.
Initializer identity(std::int64_t n_embd) {
  return [columns = static_cast<std::uint64_t>(n_embd)](const RandomStream&, std::uint64_t index) {
    return index < columns ? 1.0 : 0.0;
  };
}

std::int64_t checked(std::int64_t width) {
  check(width >= 2 && width <= kMaxConvWidth, "conv_width: must be between 2 and {} tokens; got {}", kMaxConvWidth,
        width);
  return width;
}

}  // namespace

ShortConv::ShortConv(const Scope& scope, std::int64_t n_embd, std::int64_t width)
    : weight(scope.undecayed("weight", {checked(width), n_embd}, identity(n_embd))) {}

Tensor ShortConv::operator()(const Tensor& x, Tensor* recent) const {
  if (recent == nullptr) return causal_conv(x, weight);
  Tensor y = causal_conv(x, weight, *recent);
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
