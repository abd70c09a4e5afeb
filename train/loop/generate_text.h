// Generation of text by a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "nn/models/gpt.h"
#include "nn/generate/sampler.h"

namespace maki {

struct TextOptions {
  std::int64_t max_tokens = 200;
  Sampling sampling;
  std::vector<std::string> stop;  ///< the text ends before the first of these
  bool recompute = true;          ///< when the context window is full, continue from its second half; false: end there
};

/// Why a text ended: max_tokens were drawn, a stop string was reached, the context window was full (without recompute),
/// or `interrupted` returned true.
enum class TextEnd : std::uint8_t { length, stop_string, window, interrupt };
/// "length", "stop string", "window" or "interrupt".
const char* to_string(TextEnd end);

struct GeneratedText {
  std::int64_t tokens = 0;  ///< number of tokens drawn, including those of a stop string
  TextEnd end = TextEnd::length;
};

/// The ids that a text without a prompt starts from: a newline if the vocabulary has one, else id 0.
std::vector<std::int32_t> start_of_text(const Tokenizer& tokenizer);

/// Continues `prompt` (ids), of which the model reads the last block_size tokens. Requires: `prompt` is not empty.
/// `write` receives the new text in pieces of whole characters, as soon as they cannot be part of a stop string. The
/// text is a function of (model, prompt, options, `sample`). `interrupted` is called before every token and ends the
/// text by returning true. Throws BadLogits, and what `write` throws.
GeneratedText generate_text(const Gpt& model, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                            const TextOptions& options, std::uint64_t sample,
                            const std::function<void(std::string_view)>& write,
                            const std::function<bool()>& interrupted = {});

}  // namespace maki
