#include "train/loop/score_tokens.h"

#include <algorithm>
#include <cmath>

#include "autograd/tape.h"
#include "nn/generate/sampler.h"
#include "train/loop/observed_logits.h"

namespace maki {

std::vector<TokenLogProbabilities> score_tokens(const Model& model, std::span<const std::int32_t> ids,
                                                std::int64_t count) {
  constexpr std::int64_t kRowsAtOnce = 64;  // bounds the memory for probabilities: 13 MB with GPT-2's vocabulary
  std::vector<TokenLogProbabilities> scores;
  if (ids.size() < 2) return scores;
  const std::span inputs = ids.first(ids.size() - 1), targets = ids.subspan(1);
  const std::int64_t length = std::ssize(inputs);
  Tape tape;
  ObservedLogits logits(tape);
  {
    const Recording on(tape, RandomContext{});
    model.loss({.ids = tensor(std::vector<std::int32_t>(inputs.begin(), inputs.end()), {1, length}),
                .targets = tensor(std::vector<std::int32_t>(targets.begin(), targets.end()), {1, length})},
               {});
  }
  tape.clear();
  for (std::int64_t begin = 0; begin < length; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(begin + kRowsAtOnce, length);
    const Tensor rows = logits.log_probabilities(begin, end);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t id = targets[static_cast<std::size_t>(i)];
      scores.push_back(log_probabilities(slice(rows, 0, i - begin, i - begin + 1), id, count));
      check<BadLogitsError>(!std::isnan(scores.back().drawn.value),
                            "the logits of this model are not numbers; the model has diverged");
    }
  }
  return scores;
}

}  // namespace maki
