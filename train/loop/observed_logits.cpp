#include "train/loop/observed_logits.h"

#include <stdexcept>
#include <string_view>

#include "autograd/ops.h"

namespace maki {

ObservedLogits::ObservedLogits(Tape& tape) : tape_(&tape) {
  tape.observe([this](const Tape::Observed& op) { see(op); });
}

ObservedLogits::ObservedLogits() {
  observing_.emplace([this](const Tape::Observed& op) { see(op); });
}

ObservedLogits::~ObservedLogits() {
  if (tape_ != nullptr) tape_->observe({});
}

void ObservedLogits::see(const Tape::Observed& op) {
  if (op.backward) return;
  const std::string_view name = op.name;
  if (name == "linear_cross_entropy") {
    hidden_ = op.inputs[0]->detach();
    head_ = op.inputs[1]->detach();
  } else if (name == "cross_entropy") {
    logits_ = op.inputs[0]->detach();
  }
}

const Tensor& ObservedLogits::last() const {
  if (!hidden_ && !logits_) throw std::logic_error("this model ends in neither kind of cross-entropy");
  return logits_ ? logits_ : hidden_;
}

std::int64_t ObservedLogits::rows() const { return last().numel() / last().shape().cols(); }

Tensor ObservedLogits::logits(std::int64_t begin, std::int64_t end) const {
  const Tensor part = slice(reshape(last(), {rows(), last().shape().cols()}), 0, begin, end);
  return logits_ ? part : linear(part, head_);
}

Tensor ObservedLogits::log_probabilities(std::int64_t begin, std::int64_t end) const {
  return log_softmax(logits(begin, end));
}

Tensor ObservedLogits::probabilities() const { return softmax(logits(0, rows())); }

}  // namespace maki
