#include "nn/carried.h"

#include <algorithm>

#include "autograd/core/check.h"

namespace maki {
namespace {

// The shape of a tensor [batch, length, …] for another length.
Shape with_length(const Tensor& tensor, std::int64_t length) { return tensor.shape().with(1, length); }

}  // namespace

CarriedStates::CarriedStates(const Model& model, std::int64_t micro_batches, std::int64_t batch) {
  for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
    std::unique_ptr<State> state = model.make_carried(batch);
    if (!state) return;
    for (const auto& [name, tensor] : state->tensors()) {
      const Shape& shape = tensor->shape();
      check(shape.rank() >= 2 && shape[0] == batch && shape[1] == 0,
            "carried state: the tensors of an empty one must be [{}, 0, …]; {} is {}", batch, name, shape);
      tensors_.push_back(tensor);
    }
    states_.push_back(std::move(state));
  }
  check(states_.empty() || !tensors_.empty(), "carried state: must have at least one tensor; got none");
  former_.resize(tensors_.size());
}

State* CarriedStates::of(std::int64_t micro) const {
  return any() ? states_.at(static_cast<std::size_t>(micro)).get() : nullptr;
}

void CarriedStates::clear() {
  for (const auto& state : states_) state->clear();
}

std::int64_t CarriedStates::length_after(std::int64_t tokens) const {
  return any() ? std::min(tokens, states_.front()->capacity()) : 0;
}

std::int64_t CarriedStates::numel_after(std::int64_t tokens) const {
  const std::int64_t length = length_after(tokens);
  std::int64_t sum = 0;
  for (const Tensor* const tensor : tensors_) sum += with_length(*tensor, length).numel();
  return sum;
}

std::int64_t CarriedStates::capacity_numel() const { return any() ? numel_after(states_.front()->capacity()) : 0; }

Tensor CarriedStates::values() const {
  std::int64_t count = 0, at = 0;
  for (const Tensor* const tensor : tensors_) count += tensor->numel();
  Tensor flat = empty({count}, tensors_.front()->dtype());
  for (const Tensor* const tensor : tensors_) {
    dispatch(flat.dtype(), [&]<class T>() { std::ranges::copy(tensor->values<T>(), flat.data<T>() + at); });
    at += tensor->numel();
  }
  return flat;
}

void CarriedStates::restore(const Tensor& values, std::int64_t tokens) {
  check(values.numel() == numel_after(tokens), "carried state: after {} tokens it has {} elements; got {}", tokens,
        numel_after(tokens), values.numel());
  const std::int64_t length = length_after(tokens);
  std::int64_t at = 0;
  for (Tensor* const tensor : tensors_) {
    // A copy, because a part of a larger block would keep all of it.
    const Tensor part = values.slice_flat(at, with_length(*tensor, length)).clone();
    at += part.numel();
    *tensor = part;
  }
}

CarriedStates::Rewind::Rewind(CarriedStates& states) : states_(states) {
  std::ranges::transform(states_.tensors_, states_.former_.begin(), [](const Tensor* tensor) { return *tensor; });
}

void CarriedStates::Rewind::now() {
  for (std::size_t i = 0; i < states_.tensors_.size(); ++i) *states_.tensors_[i] = states_.former_[i];
}

CarriedStates::Rewind::~Rewind() {
  if (!kept_) now();
  std::ranges::fill(states_.former_, Tensor());
}

}  // namespace maki
