// Texts of which new ones come while others are being generated: those that wait become one batch, whose texts share
// each pass over the weights, and batches take turns token by token. Two rules keep room for new texts, so that none
// waits for a long text of another request:
//
// - A batch takes at most a quarter of the memory for states that is left. So a text waits for other requests only
//   while its own state, or that of a text before it, does not fit.
// - The texts of a request are in one batch at a time, and the rest of them waits for these: in several batches they
//   would take turns from other requests, and the last would end no earlier.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <vector>

#include "nn/generate/generate.h"

namespace maki {

/// A text that is to be generated.
class TurnText {
 public:
  virtual ~TurnText() = default;
  virtual const Generator& model() const = 0;
  virtual GenerationBatch::Text start() const = 0;
  /// Identifies its request: equal for all texts of one request, and for no others as long as that is not done.
  virtual const void* request() const = 0;
  /// Whether somebody still waits for the text. If nobody does, it may be dropped without another call.
  virtual bool wanted() const = 0;
  /// The next token, and the logits from which it was drawn. Returns whether the text goes on.
  virtual bool add(std::int32_t token, const Tensor& logits) = 0;
  virtual void end(const Generated& how) = 0;
  /// Generation failed, perhaps because of another text of the batch; no other call follows. Called by the handler of
  /// this exception, which may throw it again.
  virtual void fail(const std::exception& error) = 0;
};

class TextTurns {
 public:
  /// `max_state_bytes` limits the memory for the states of all texts that are being generated. A text whose state is
  /// larger is generated while there is no other.
  explicit TextTurns(std::int64_t max_state_bytes = std::int64_t{4} << 30) : max_state_bytes_(max_state_bytes) {}

  void add(std::shared_ptr<TurnText> text) {
    waiting_.push_back(std::move(text));
    changed_ = true;
  }
  bool idle() const { return waiting_.empty() && batches_.empty(); }
  /// Begins a batch if one can begin, and does a step of each: draws a token of every text whose prompt has been read.
  /// Each text gets the tokens that generate() would give it, with the exception that generate_batch() names. What the
  /// model throws ends the texts of the batch.
  void step();

 private:
  using Texts = std::vector<std::shared_ptr<TurnText>>;
  struct Batch {
    Batch(Texts its_texts, std::int64_t bytes);
    Texts texts;               // null: it has ended
    std::int64_t state_bytes;  // of each text
    GenerationBatch generation;
  };
  void begin_batch();
  std::int64_t choose(Texts& texts) const;
  void step(Batch& batch);

  std::int64_t max_state_bytes_;
  std::deque<std::shared_ptr<TurnText>> waiting_;
  std::list<Batch> batches_;
  bool changed_ = false;  // whether another text may begin than when none could
};

}  // namespace maki
