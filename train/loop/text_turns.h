// Texts of which new ones come while others are being generated: those that wait become one batch, whose texts share
// each pass over the weights, and batches take turns token by token, so that none waits for a long text.
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
  /// Whether somebody still waits for the text; asked before it begins.
  virtual bool wanted() const = 0;
  /// The next token, and the logits from which it was drawn. Returns whether the text goes on.
  virtual bool add(std::int32_t token, const Tensor& logits) = 0;
  virtual void end(const Generated& how) = 0;
  /// Generation failed, perhaps because of another text of the batch; no other call follows.
  virtual void fail(const std::exception& error) = 0;
};

class TextTurns {
 public:
  void add(std::shared_ptr<TurnText> text) { waiting_.push_back(std::move(text)); }
  bool idle() const { return waiting_.empty() && batches_.empty(); }
  /// Draws a token of every text that is being generated. Each gets the tokens that generate() would give it, with the
  /// exception that generate_batch() names. What the model throws ends the texts of the batch.
  void step();

 private:
  using Texts = std::vector<std::shared_ptr<TurnText>>;
  struct Batch {
    explicit Batch(Texts its_texts);
    Texts texts;
    GenerationBatch generation;
  };
  Texts take();
  void form_batches();

  std::deque<std::shared_ptr<TurnText>> waiting_;
  std::list<Batch> batches_;
};

}  // namespace maki
