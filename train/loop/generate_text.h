// Generation of text by a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/core/stop_request.h"
#include "data/tokenizer/tokenizer.h"
#include "nn/generate/generate.h"
#include "nn/generate/log_probabilities.h"

namespace maki {

struct TextOptions {
  GenerateOptions generate;
  /// The text ends before the first of these. They are compared with the bytes of the text, however these are divided
  /// into tokens. An empty one ends it at the first token.
  std::vector<std::string> stop;
  /// Set: GeneratedText::log_probabilities, with this number of the most probable tokens for each token drawn.
  std::optional<std::int64_t> log_probabilities = {};
};

/// Why a text ended: max_tokens were drawn, a stop string was reached, a token that ends a text was drawn
/// (Tokenizer::ends()), the context was full (and does not slide), or there was an interrupt.
enum class TextEnd : std::uint8_t { length, stop_string, end_of_text, window, interrupt };
/// "length", "stop string", "end of text", "window" or "interrupt".
const char* to_string(TextEnd end);

struct GeneratedText {
  std::int64_t tokens = 0;  ///< number of tokens drawn, including those of a stop string and the end of the text
  TextEnd end = TextEnd::length;
  std::vector<TokenLogProbabilities> log_probabilities = {};  ///< of all tokens drawn, if they were requested
};

/// A text while its tokens are drawn: turns them into pieces of whole characters that are not part of a stop string,
/// and finds out where it ends.
class GrowingText {
 public:
  /// Requires: both outlive the object.
  GrowingText(const Tokenizer& tokenizer, const TextOptions& options);
  ~GrowingText();
  GrowingText(GrowingText&&) noexcept;
  GrowingText& operator=(GrowingText&&) = delete;

  /// The next token, and the logits from which it was drawn. Returns whether the text goes on. `interrupt` is asked
  /// after every token, except one that ends the text.
  bool add(std::int32_t token, const Tensor& logits, const StopRequest& interrupt = {});
  /// Generation of the text has ended. What was held back becomes certain.
  void end(const Generated& result);
  bool ended() const { return ended_; }
  /// What is certain and was not taken before.
  std::string take();
  const GeneratedText& how() const { return how_; }

 private:
  class Held;
  const Tokenizer& tokenizer_;
  const TextOptions& options_;
  std::vector<std::int32_t> ends_;  // the tokens that end a text
  std::unique_ptr<Held> held_;
  std::string ready_;
  bool ended_ = false;
  GeneratedText how_;
};

/// The ids that a text without a prompt starts from: a newline if the vocabulary has one, else id 0. For a model that
/// was trained on texts of which each begins or ends with a token of its own (`separated`), such as GPT-2, it is this
/// token, if the vocabulary has it.
std::vector<std::int32_t> default_prompt(const Tokenizer& tokenizer, bool separated = false);

/// Continues `prompt` (ids), of which the model reads the last ones that fit its context. Requires: `prompt` is not
/// empty. `write` receives the new text in pieces of whole characters, as soon as they cannot be part of a stop string.
/// The text is a function of (model, prompt, options, `sample`). `interrupt` is asked after every token, except one
/// that completes a stop string or ends texts, and after each part of a long prompt (GenerationBatch::step()), and ends
/// the text; what was held back is then written.
/// Throws BadLogitsError, Error if an option of the sampling is out of range, and what `write` throws.
GeneratedText generate_text(const Generator& model, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                            const TextOptions& options, std::uint64_t sample,
                            const std::function<void(std::string_view)>& write, const StopRequest& interrupt = {});

/// generate_text() for several texts, in batches. The pieces of a text are written after the texts before it have
/// ended; until then they wait in memory. `write` receives the index of the text and a piece, `ended` the index and how
/// the text ended, in ascending order. After an interrupt, the text that is being written ends, and the
/// remaining ones are neither written nor ended.
void generate_texts(const Generator& model, const Tokenizer& tokenizer, std::span<const TextStart> texts,
                    const TextOptions& options, const std::function<void(std::size_t, std::string_view)>& write,
                    const std::function<void(std::size_t, const GeneratedText&)>& ended,
                    const StopRequest& interrupt = {});

}  // namespace maki
