#include "train/loop/counted_prior.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/ops.h"

namespace maki {

void CountedPrior::log_probabilities(std::span<const std::int32_t> before, std::span<const std::int32_t> ids,
                                     std::span<float> out) const {
  NgramContext context;
  const auto known = std::min(before.size(), static_cast<std::size_t>(context_tokens()));
  for (const std::int32_t id : before.last(known)) context = counts_->next(context, id);
  const auto vocab = static_cast<std::size_t>(vocab_size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    context = counts_->next(context, ids[i]);
    counts_->log_probabilities(context, out.subspan(i * vocab, vocab));
  }
}

Tensor prior_of_windows(const NgramTrie& counts, TokenSpan text, std::span<const std::int64_t> starts,
                        std::int64_t length, const HeldOutCounts* held_out) {
  // Tokens for which one thread reads the context anew, and the arithmetic of one: chosen without a measurement.
  constexpr std::int64_t kStretch = 32, kWorkPerToken = 1000;
  const std::int64_t tokens = static_cast<std::int64_t>(text.size()), vocab = counts.vocab_size();
  const std::int64_t stretches = (length + kStretch - 1) / kStretch;
  Tensor prior = empty({std::ssize(starts), length, vocab}, DType::float32);
  const auto read = [&](const NgramContext& context, std::int64_t position) {
    const bool begins = position == 0 || std::ranges::binary_search(text.joins(), position);
    return counts.next(begins ? NgramContext{} : context, text[static_cast<std::size_t>(position)]);
  };
  parallel_for(std::ssize(starts) * stretches, kStretch * kWorkPerToken, [&](std::int64_t i) {
    const std::int64_t window = i / stretches, begin = i % stretches * kStretch;
    const std::int64_t end = std::min(length, begin + kStretch), start = starts[static_cast<std::size_t>(window)];
    const std::int64_t first = (start + begin) % tokens;
    NgramContext context;
    for (std::int64_t p = std::max<std::int64_t>(0, first - (counts.order() - 1)); p < first; ++p)
      context = read(context, p);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t position = (start + t) % tokens;
      context = read(context, position);
      const HeldOutPart* part = held_out != nullptr ? &held_out->part_of((position + 1) % tokens) : nullptr;
      counts.log_probabilities(
          context, {prior.data<float>() + (window * length + t) * vocab, static_cast<std::size_t>(vocab)}, part);
    }
  });
  return prior;
}

}  // namespace maki
