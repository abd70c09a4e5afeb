#include "train/loop/score_tokens.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "autograd/core/check.h"
#include "nn/generate/sampler.h"
#include "train/loop/observed_logits.h"
#include "train/run/config/tasks.h"

namespace maki {

void check_predicts_next(const LoadedModel& loaded) {
  const TaskRule& task = task_rule(loaded.state.config);
  check(task.predicts_next,
        "{}: is a model of task {}, which does not predict each token of a text from those before it; use a run of "
        "task next_token",
        loaded.path, task.name);
}

std::vector<TokenLogProbabilities> score_tokens(const LoadedModel& loaded, std::span<const std::int32_t> ids,
                                                std::int64_t top) {
  constexpr std::int64_t kRowsAtOnce = 64;  // bounds the memory for probabilities: 13 MB with GPT-2's vocabulary
  check_predicts_next(loaded);
  const std::int64_t rows = std::ssize(ids) - 1, most = loaded.state.config.block_size + 1;
  check(rows >= 0 && rows < most,
        "tokens: a text that is scored must have 1 to {} tokens; got {}; give a text of that length", most, ids.size());
  check(top >= 0, "top: must be at least 0; got {}", top);
  std::vector<TokenLogProbabilities> scores;
  if (rows == 0) return scores;
  ObservedLogits logits;
  loaded.model->loss(
      {.ids = tensor(ids.first(ids.size() - 1), {1, rows}), .targets = tensor(ids.subspan(1), {1, rows})}, {});
  if (logits.rows() != rows) throw std::logic_error("score: the logits of this model are not one row for each token");
  for (std::int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(begin + kRowsAtOnce, rows);
    const Tensor logs = logits.log_probabilities(begin, end);
    const std::int64_t vocabulary = logs.shape().cols();
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t id = ids[static_cast<std::size_t>(i) + 1];
      const Tensor row = logs.slice_flat((i - begin) * vocabulary, {vocabulary});
      scores.push_back(log_probabilities(row, id, top));
      check<BadLogitsError>(!std::isnan(scores.back().drawn.value),
                            "{}: the logits of the model are not finite; it has diverged, use an earlier checkpoint",
                            loaded.path);
    }
  }
  return scores;
}

}  // namespace maki
