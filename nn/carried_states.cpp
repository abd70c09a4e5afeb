#include "nn/carried_states.h"

#include <algorithm>

#include "autograd/core/check.h"

namespace maki {
namespace {

// a · b, but at most the largest number of elements that a tensor can have.
std::int64_t limited_product(std::int64_t a, std::int64_t b) {
  return a == 0 || b <= Shape::kMaxElements / a ? a * b : Shape::kMaxElements;
}

}  // namespace

CarriedLayout::CarriedLayout(const Model& model, std::int64_t micro_batches, std::int64_t batch)
    : micro_batches_(micro_batches) {
  check(micro_batches >= 1, "carried state: there must be at least 1 micro-batch; got {}", micro_batches);
  const std::unique_ptr<State> state = model.make_carried(batch);
  if (!state) return;
  capacity_ = state->capacity();
  for (const auto& [name, tensor] : state->tensors()) {
    const Shape& shape = tensor->shape();
    check(shape.rank() >= 2 && shape[0] == batch && shape[1] == 0,
          "carried state: the tensors of an empty one must be [{}, 0, …]; {} is {}", batch, name, shape);
    empty_.push_back(shape);
    dtype_ = tensor->dtype();
  }
  check(any(), "carried state: must have at least one tensor; got none");
}

std::int64_t CarriedLayout::numel(std::int64_t length) const {
  std::int64_t sum = 0;
  for (const Shape& shape : empty_) {
    std::int64_t elements = length;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (axis != 1) elements = limited_product(elements, shape[axis]);
    }
    sum = std::min(Shape::kMaxElements, sum + elements);
  }
  return limited_product(sum, micro_batches_);
}

CarriedStates::CarriedStates(const Model& model, std::int64_t micro_batches, std::int64_t batch)
    : layout_(model, micro_batches, batch) {
  for (std::int64_t micro = 0; any() && micro < micro_batches; ++micro) {
    states_.push_back(model.make_carried(batch));
    for (const auto& entry : states_.back()->tensors()) tensors_.push_back(entry.second);
  }
  former_.resize(tensors_.size());
}

State* CarriedStates::of(std::int64_t micro) const {
  return any() ? states_.at(static_cast<std::size_t>(micro)).get() : nullptr;
}

void CarriedStates::clear() {
  for (const auto& state : states_) state->clear();
}

std::span<Tensor* const> CarriedStates::tensors(std::int64_t begin, std::int64_t end) const {
  const std::size_t each = tensors_.size() / states_.size();
  const auto first = static_cast<std::size_t>(begin), last = static_cast<std::size_t>(end);
  return std::span(tensors_).subspan(first * each, (last - first) * each);
}

Tensor CarriedStates::values() const { return values(0, std::ssize(states_)); }

Tensor CarriedStates::values(std::int64_t begin, std::int64_t end) const {
  std::int64_t count = 0, at = 0;
  for (const Tensor* const tensor : tensors(begin, end)) count += tensor->numel();
  Tensor flat = empty({count}, layout_.dtype());
  for (const Tensor* const tensor : tensors(begin, end)) {
    dispatch(flat.dtype(), [&]<class T>() { std::ranges::copy(tensor->values<T>(), flat.data<T>() + at); });
    at += tensor->numel();
  }
  return flat;
}

void CarriedStates::restore(const Tensor& values, std::int64_t length) {
  restore(values, length, 0, std::ssize(states_));
}

void CarriedStates::restore(const Tensor& values, std::int64_t length, std::int64_t begin, std::int64_t end) {
  const std::int64_t expected = layout_.numel(length) / std::ssize(states_) * (end - begin);
  check(length >= 0 && length <= layout_.capacity() && values.numel() == expected,
        "carried state: must have at most {} tokens, and for {} tokens {} elements; got {}", layout_.capacity(), length,
        expected, values.numel());
  std::int64_t at = 0;
  for (Tensor* const tensor : tensors(begin, end)) {
    // A copy, because a part of a larger block would keep all of it.
    const Tensor part = values.slice_flat(at, tensor->shape().with(1, length)).clone();
    at += part.numel();
    *tensor = part;
  }
}

CarriedStates::Rewind::Rewind(CarriedStates& states) : states_(states) {
  std::ranges::transform(states_.tensors_, states_.former_.begin(), [](const Tensor* tensor) { return *tensor; });
}

void CarriedStates::Rewind::rollback() {
  for (std::size_t i = 0; i < states_.tensors_.size(); ++i) *states_.tensors_[i] = states_.former_[i];
}

CarriedStates::Rewind::~Rewind() {
  if (!committed_) rollback();
  std::ranges::fill(states_.former_, Tensor());
}

}  // namespace maki
