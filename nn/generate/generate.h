// Generation: draws token after token from a model. The command line, benchmarks and programs all use it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "nn/generate/sampler.h"
#include "nn/model.h"

namespace maki {

struct GenerateOptions {
  std::int64_t max_tokens = 200;  ///< the most tokens that are drawn, at least 0
  Sampling sampling;
  /// What happens when the context is full (State::capacity()): if true, its second half is read again and generation
  /// goes on; if false, it stops.
  bool slide_context = true;
  /// If set, called for every token as soon as it is drawn, before `use`, with the index of its text (0 for a single
  /// one) and the logits [1, vocabulary] from which it was drawn, before the sampling options changed them.
  std::function<void(std::size_t text, std::int32_t token, const Tensor& logits)> watch = {};
};

/// Why generation ended: max_tokens were drawn; `use` returned false; the context was full and may not slide.
enum class StopReason : std::uint8_t { max_tokens, stopped, context_full };

struct Generated {
  std::int64_t tokens = 0;  ///< drawn, including one at which the caller stopped
  StopReason reason = StopReason::max_tokens;
};

/// Draws tokens that continue `prompt`. If the prompt is longer than the context, the model reads only its end, and
/// only this end counts for penalties. Each token is passed to `use` as soon as it is drawn; generation stops when
/// `use` returns false. The tokens are a function of the model, the prompt, the options and `sample`, which selects one
/// of the random streams of the seed in the options. Throws Error for an empty prompt, for options that Sampler
/// refuses, for ids outside the vocabulary, for a model that needs a source and inside a Recording; BadLogitsError if
/// the logits give no distribution; and whatever `use` and `watch` throw.
Generated generate(const Generator& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
                   std::uint64_t sample, const std::function<bool(std::int32_t token)>& use);

/// One of several texts that are generated together.
struct TextStart {
  std::span<const std::int32_t> prompt;
  std::uint64_t sample = 0;
};

/// generate() for several texts in one batch, which costs little more time per token than a single text. Text i gets
/// the tokens that it would get alone if the model's logits have the same bits however tokens are divided among calls
/// (Generator::same_bits_stepwise()), or if all prompts have the same length; otherwise rounding may change a draw.
/// `use` receives the index of the text and the token; `ended` is called once per text, as soon as it ends, in the
/// order in which texts end, and not after an exception, which ends all texts. Throws as generate() does. Does nothing
/// without texts.
void generate_batch(const Generator& model, std::span<const TextStart> texts, const GenerateOptions& options,
                    const std::function<bool(std::size_t text, std::int32_t token)>& use,
                    const std::function<void(std::size_t text, const Generated&)>& ended);

}  // namespace maki
