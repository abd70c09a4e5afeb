// Text from a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"
#include "nn/gpt.h"
#include "nn/sampler.h"

namespace maki {

struct TextOptions {
  std::int64_t max_tokens = 200;
  Sampling sampling;
  std::vector<std::string> stop;  ///< the text ends before the first of these
  bool recompute = true;          ///< at the end of the window, go on from its last half; false: end there
};

/// Why a text ended.
enum class TextEnd : std::uint8_t { length, stop_string, window, interrupt };
/// "length", "stop string", "window" or "interrupt".
const char* to_string(TextEnd end);

struct GeneratedText {
  std::int64_t tokens = 0;  ///< drawn, those of a stop string included
  TextEnd end = TextEnd::length;
};

/// The ids that a text without a prompt starts from: a newline, where the vocabulary has one.
std::vector<std::int32_t> start_of_text(const Tokenizer& tokenizer);

/// Goes on from `prompt`, which must not be empty; of one longer than the window the model reads the end. `write`
/// receives the new text in pieces of whole characters, as soon as they cannot be part of a stop string. What is drawn
/// is a function of (model, prompt, options, `sample`). `interrupted` is asked before every token. Throws BadLogits,
/// and what `write` throws.
GeneratedText generate_text(const Gpt& model, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                            const TextOptions& options, std::uint64_t sample,
                            const std::function<void(std::string_view)>& write,
                            const std::function<bool()>& interrupted = {});

}  // namespace maki
