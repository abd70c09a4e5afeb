#include "train/loop/estimate.h"

#include <algorithm>
#include <fmt/format.h>

#include "autograd/core/parallel.h"
#include "autograd/ops.h"
#include "data/io/number.h"
#include "data/mixing/held_out_expectations.h"
#include "train/loop/taught_task.h"
#include "train/loop/team/step_cost.h"
#include "train/loop/trainer.h"

namespace maki {

MemoryNeed memory_needed(const Config& c, const TrainableModel& trainable, const VocabSizes& vocab,
                         std::int64_t ranks) {
  const ParameterStore& store = trainable.store;
  const std::int64_t size = size_of(store.dtype()), trained = store.trainable().size() * size;
  MemoryNeed need;
  need.parameters = store.numel();
  for (const auto& parameter : store.parameters())
    need.trained += parameter->trainable() ? parameter->shape().numel() : 0;
  need.values = store.range(ParamGroup::frozen).end * size;
  if (keeps_rounded_weights(c)) need.rounded_values = store.rounded_values_bytes();
  const StepCost step = step_cost(step_work(trainable, c.grad_accum), ranks);
  need.gradients = step.gradients * trained;
  need.buffers = step.buffer_bytes;
  for (const MomentLayout& moment : trainable.optimizer->moment_layouts()) {
    // Every rank updates tables, so each has their moments.
    const bool of_tables = moment.parts.front().parameter->group() == ParamGroup::rows;
    const std::int64_t bytes = moment.length * size, own = of_tables ? bytes : bytes / ranks;
    need.moments += own;
    need.collected += bytes - own;
  }
  // What an update takes was free before.
  need.activations =
      std::max(trainable.model->activation_bytes(c.batch_size, c.block_size), trainable.optimizer->update_bytes());
  if (!c.teacher.empty()) {
    const std::int64_t logits = c.batch_size * c.block_size * vocab.target * size;
    // What is expected. A model without a prior counts its logits as if they were computed in chunks and overwritten
    // with their gradient; with teachers they are whole, and the gradient has memory of its own.
    const std::int64_t uncounted = logits + std::max<std::int64_t>(0, logits - kMaxLogitsBytes);
    need.expected = logits + (c.ngram_prior > 0 ? 0 : uncounted);
  }
  need.carried = 2 * size * trainable.carried.numel(trainable.carried.capacity());
  return need;
}

MemoryNeed memory_needed(const Config& config, const VocabSizes& vocab, std::int64_t ranks) {
  return memory_needed(config, TrainableModel(config, vocab), vocab, ranks);
}

void add_counts(const Config& config, std::int64_t tokens, MemoryNeed& need) {
  if (!has_counting_teacher(config)) return;
  need.counts = HeldOutExpectations::bytes_kept(tokens);
  need.counting = HeldOutExpectations::bytes_to_make(tokens, threads());
}

std::string format_bytes(std::int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.1f} GB", number / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.0f} MB", number / 1e6);
  return bytes >= 1000 ? fmt::format("{:.0f} kB", number / 1e3) : pluralize(bytes, "byte");
}

}  // namespace maki
