#include "nn/generate/generate.h"

#include <algorithm>
#include <vector>

#include "autograd/core/check.h"

namespace maki {

Generated generate(const Generator& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
                   std::uint64_t sample, const std::function<bool(std::int32_t)>& use) {
  check(!prompt.empty(), "generate: the prompt must have at least one token");
  Sampler sampler(options.sampling);
  const std::unique_ptr<State> state = model.start(1);
  const std::int64_t capacity = state->capacity();
  // `unread` is what the model reads next, `context` everything it has read since the state was last cleared.
  const auto end = prompt.last(std::min(prompt.size(), static_cast<std::size_t>(capacity)));
  std::vector<std::int32_t> unread(end.begin(), end.end()), context;
  Generated generated;
  while (generated.tokens < options.max_tokens) {
    context.insert(context.end(), unread.begin(), unread.end());
    if (static_cast<std::int64_t>(context.size()) > capacity) {
      if (!options.slide_context) return {generated.tokens, StopReason::context_full};
      context.erase(context.begin(), context.end() - std::max<std::int64_t>(1, capacity / 2));
      state->clear();
      unread = context;
    }
    const Tensor logits = model.next_logits(tensor(unread, {1, static_cast<std::int64_t>(unread.size())}), *state);
    unread = {sampler(logits, sample, static_cast<std::uint64_t>(generated.tokens))};
    ++generated.tokens;
    if (!use(unread.front())) return {generated.tokens, StopReason::stopped};
  }
  return generated;
}

}  // namespace maki
