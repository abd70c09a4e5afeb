// Generation: token after token from a model, the same for the command line, benchmarks and programs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "nn/generate/sampler.h"
#include "nn/model.h"

namespace maki {

struct GenerateOptions {
  std::int64_t max_tokens = 200;
  Sampling sampling;
  /// Where the model's context is full: true: start again from its last half; false: stop.
  bool slide_context = true;
};

/// Why generation ended.
enum class StopReason : std::uint8_t { max_tokens, stopped, context_full };

struct Generated {
  std::int64_t tokens = 0;  ///< drawn, including one at which the caller stopped
  StopReason reason = StopReason::max_tokens;
};

/// Draws tokens that continue `prompt`, which must not be empty; of a prompt longer than the context the model reads
/// the end. Each token is given to `use` as soon as it is drawn; false stops. What is drawn is a function of the model,
/// the prompt, the options and `sample`, the number of the random stream. Throws BadLogitsError, and what `use` throws.
Generated generate(const Generator& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
                   std::uint64_t sample, const std::function<bool(std::int32_t token)>& use);

}  // namespace maki
