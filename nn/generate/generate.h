// Generation: draws token after token from a model. The command line, benchmarks and programs all use it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autograd/core/stop_request.h"
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
/// of the random streams of the seed in the options. Throws Error for an empty prompt, for a negative number of tokens,
/// for options that Sampler refuses, for ids outside the vocabulary, for a model that needs a source and inside a
/// Recording; BadLogitsError if the logits give no distribution; and whatever `use` and `watch` throw.
Generated generate(const Generator& model, std::span<const std::int32_t> prompt, const GenerateOptions& options,
                   std::uint64_t sample, const std::function<bool(std::int32_t token)>& use);

/// One of several texts that are generated together.
struct TextStart {
  std::span<const std::int32_t> prompt;
  std::uint64_t sample = 0;
};

/// Texts that are generated in step, each with options of its own: one pass over the weights draws a token of each. All
/// are at the same position of their contexts. They read their prompts together until the shortest one ends, and from
/// then on one token at a time: the next one of the prompt, or the one that was drawn. So no text needs padding or a
/// length of its own, which a recurrent state could not have.
class GenerationBatch {
 public:
  struct Text {
    std::span<const std::int32_t> prompt;  ///< not empty; read by the constructor only
    std::uint64_t sample = 0;
    std::int64_t max_tokens = 200;  ///< at least 1
    Sampling sampling = {};
  };
  /// Receives the index of a text, the token that was drawn, and the logits [1, vocabulary] from which it was drawn,
  /// before the sampling options changed them. Returns whether the text goes on.
  using Use = std::function<bool(std::size_t text, std::int32_t token, const Tensor& logits)>;
  using Ended = std::function<void(std::size_t text, const Generated&)>;

  /// The most tokens of each text that one step reads, so that the memory of a step does not grow with the prompts, and
  /// its caller can do something else meanwhile. As many as linear attention sums at a time, so that its results have
  /// the bits of a single pass; and the same for any number of texts, so that they are those of one text alone.
  static constexpr std::int64_t kMaxReadTokens = 512;

  /// Throws as generate() does. Requires: there is a text, and max_tokens of each is at least 1; the model outlives the
  /// batch.
  GenerationBatch(const Generator& model, std::span<const Text> texts, bool slide_context = true);

  bool running() const { return !rows_.empty(); }
  /// Reads as many tokens as every text has, at most kMaxReadTokens of each, and draws the next one of each whose
  /// context has then been read: of none while the shortest prompt is being read, or while a context that was full is
  /// read again. Those that end leave the batch, with a call of `ended`. Throws what generate() throws; the batch must
  /// then not be used again. Requires: running().
  void step(const Use& use, const Ended& ended);
  /// Ends all texts that are left, as if `use` had returned false.
  void stop(const Ended& ended) { end_all(StopReason::stopped, ended); }

 private:
  // A text that is being generated: one row of the state.
  struct Row {
    std::size_t text;               // its index
    std::vector<std::int32_t> ids;  // the context: what the state has read of it, and what it reads next
    std::uint64_t sample;
    std::int64_t max_tokens;
    bool penalizes;  // whether the history is kept
    Sampler sampler;
    Generated generated = {};
    TokenHistory history = {};
  };
  void end_all(StopReason reason, const Ended& ended);
  void slide();
  Tensor read();
  bool draw(Row& row, const Tensor& logits, const Use& use);
  void draw(const Tensor& logits, const Use& use, const Ended& ended);

  const Generator& model_;
  bool slide_context_;
  std::unique_ptr<State> state_;
  std::vector<Row> rows_;
  std::int64_t read_ = 0;  // tokens of every context that the state has read
};

/// generate() for several texts in one batch, which costs little more time per token than a single text. Text i gets
/// the tokens that it would get alone if the model's logits have the same bits however tokens are divided among calls
/// (Generator::same_bits_stepwise()), or if all prompts have the same length; otherwise rounding may change a draw.
/// `use` receives the index of the text and the token; `ended` is called once per text, as soon as it ends, in the
/// order in which texts end, and not after an exception, which ends all texts. `interrupt` is asked after each step of
/// the batch, also while prompts are being read, and ends all texts as if `use` had returned false. Throws as
/// generate() does. Does nothing without texts.
void generate_batch(const Generator& model, std::span<const TextStart> texts, const GenerateOptions& options,
                    const std::function<bool(std::size_t text, std::int32_t token)>& use,
                    const std::function<void(std::size_t text, const Generated&)>& ended,
                    const StopRequest& interrupt = {});

}  // namespace maki
