// The logits behind a loss, without the help of the model: every model that predicts tokens ends in one of two ops,
// whose inputs give them, and a tape tells its observer about every op.
#pragma once

#include <cstdint>
#include <optional>

#include "autograd/tape.h"
#include "autograd/tensor.h"

namespace maki {

/// What the last loss was computed from.
class ObservedLogits {
 public:
  /// Of the losses that are recorded on this tape. Requires: the tape outlives the object, and nobody else observes it.
  explicit ObservedLogits(Tape& tape);
  /// Of the losses computed on this thread while the object exists, which none records (Observing).
  ObservedLogits();
  ~ObservedLogits();
  ObservedLogits(const ObservedLogits&) = delete;
  ObservedLogits& operator=(const ObservedLogits&) = delete;

  /// Forgets the last loss; call it before each.
  void forget() { hidden_ = head_ = logits_ = {}; }
  /// The number of rows of logits, one per token that was, or could have been, predicted. This and the next function
  /// throw std::logic_error if no loss has been seen.
  std::int64_t rows() const;
  /// The log-softmax of rows [begin, end) of the logits: [end − begin, V]. Computed here, not taken from the op.
  Tensor log_probabilities(std::int64_t begin, std::int64_t end) const;
  /// The softmax of all rows: [rows(), V].
  Tensor probabilities() const;

 private:
  void see(const Tape::Observed& op);
  const Tensor& last() const;
  Tensor logits(std::int64_t begin, std::int64_t end) const;

  Tape* tape_ = nullptr;                // that is observed; else
  std::optional<Observing> observing_;  // this scope
  Tensor hidden_, head_, logits_;       // the first two, or the logits
};

}  // namespace maki
