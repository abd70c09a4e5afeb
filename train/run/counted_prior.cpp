#include "train/run/counted_prior.h"

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

namespace {

// The ids of windows, each after the ids that its first context consists of. They are read before a parallel loop,
// which an exception must not leave.
class WindowIds {
 public:
  WindowIds(TokenSpan text, std::span<const std::int64_t> starts, std::int64_t length, std::int64_t before)
      : width_(before + length), before_(before), ids_(static_cast<std::size_t>(std::ssize(starts) * width_)) {
    const auto tokens = static_cast<std::int64_t>(text.size());
    for (std::int64_t window = 0; window < std::ssize(starts); ++window) {
      const std::int64_t start = starts[static_cast<std::size_t>(window)];
      const std::span row = std::span(ids_).subspan(static_cast<std::size_t>(window * width_));
      // The text is a ring: its first token follows its last one.
      for (std::int64_t t = -std::min(before, start); t < length;) {
        const std::int64_t position = (start + t) % tokens, count = std::min(length - t, tokens - position);
        text.copy(position, row.subspan(static_cast<std::size_t>(before + t), static_cast<std::size_t>(count)));
        t += count;
      }
    }
  }
  /// Token t of a window, which may be below 0.
  std::int32_t at(std::int64_t window, std::int64_t t) const {
    return ids_[static_cast<std::size_t>(window * width_ + before_ + t)];
  }

 private:
  std::int64_t width_, before_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

Tensor prior_of_windows(const NgramTrie& counts, TokenSpan text, std::span<const std::int64_t> starts,
                        std::int64_t length, const HeldOutCounts* held_out) {
  constexpr std::int64_t kStretch = 32;         // tokens, for which a thread reads at most five anew, a sixth
  constexpr std::int64_t kWorkPerToken = 1000;  // a rough guess, in elementary operations (parallel.h)
  const std::int64_t tokens = static_cast<std::int64_t>(text.size()), vocab = counts.vocab_size();
  const std::int64_t stretches = (length + kStretch - 1) / kStretch;
  const WindowIds ids(text, starts, length, counts.order() - 1);
  Tensor prior = empty({std::ssize(starts), length, vocab}, DType::float32);
  parallel_for(std::ssize(starts) * stretches, kStretch * kWorkPerToken, [&](std::int64_t i) {
    const std::int64_t window = i / stretches, begin = i % stretches * kStretch;
    const std::int64_t end = std::min(length, begin + kStretch), start = starts[static_cast<std::size_t>(window)];
    const std::int64_t known = std::min<std::int64_t>(counts.order() - 1, (start + begin) % tokens);
    NgramContext context;
    for (std::int64_t t = begin - known; t < end; ++t) {
      const std::int64_t position = (start + t) % tokens;
      const bool begins = position == 0 || std::ranges::binary_search(text.joins(), position);
      context = counts.next(begins ? NgramContext{} : context, ids.at(window, t));
      if (t < begin) continue;
      const HeldOutPart* part = held_out != nullptr ? &held_out->part_of((position + 1) % tokens) : nullptr;
      counts.log_probabilities(
          context, {prior.data<float>() + (window * length + t) * vocab, static_cast<std::size_t>(vocab)}, part);
    }
  });
  return prior;
}

}  // namespace maki
