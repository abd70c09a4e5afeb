// Estimates of the memory that a run needs, made before any of it is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "train/run/trainable_model.h"

namespace maki {

/// Peak memory of training, in bytes, of one process or of the rank that needs most. Activations are an estimate: what
/// the recorded ops of one micro-batch save for backward, plus the gradients that are alive at the same time, or what
/// an update takes, if that is more. What the model carries from one step to the next exists twice during a step, which
/// can be abandoned. The text, its tokens, the weights and counts of teachers and the program itself are not included.
struct MemoryNeed {
  std::int64_t parameters = 0, trained = 0;  ///< the number of all parameters, and of those that are trained; not bytes
  std::int64_t values = 0, rounded_values = 0, gradients = 0, moments = 0, activations = 0, carried = 0;
  std::int64_t expected = 0;   ///< what teachers predict of a micro-batch, and the logits that learn it
  std::int64_t counts = 0;     ///< of the text, which teach ("@counts")
  std::int64_t counting = 0;   ///< all memory while these are made, before training begins
  std::int64_t buffers = 0;    ///< for what ranks receive
  std::int64_t collected = 0;  ///< moments of the others, which rank 0 has while it saves; not part of the total

  std::int64_t training() const {
    return values + rounded_values + gradients + moments + activations + carried + expected + counts + buffers;
  }
  std::int64_t total() const { return std::max(counting, training()); }
};
/// Estimates the memory of a run with this model, on each of so many ranks.
MemoryNeed memory_needed(const Config& config, const TrainableModel& model, const VocabSizes& vocab,
                         std::int64_t ranks = 1);
/// Estimates the memory of a run without allocating any for the model. Throws Error if the configuration describes
/// none.
MemoryNeed memory_needed(const Config& config, const VocabSizes& vocab, std::int64_t ranks = 1);

/// Adds the memory of counts that teach, if the configuration has them, of a training text of so many tokens.
void add_counts(const Config& config, std::int64_t tokens, MemoryNeed& need);

/// A size for display, in powers of ten: "1.5 GB", "320 MB", "5 kB", "281 bytes".
std::string format_bytes(std::int64_t bytes);

}  // namespace maki
