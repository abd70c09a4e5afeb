// Grads: how a backward closure reads the gradients of outputs and delivers those of inputs.
#include <utility>

#include "autograd/core/check.h"
#include "autograd/parameter.h"
#include "autograd/tape.h"

namespace maki {

bool Grads::wants(int i) const {
  const Tape::Node& node = tape_.nodes_[node_];
  check(i >= 0 && static_cast<std::uint32_t>(i) < node.inputs,
        "{}: its backward asked for input {} of {}; this is a bug in the op", node.name, i, node.inputs);
  return tape_.inputs_[node.first_input + static_cast<std::uint32_t>(i)].wanted();
}

// The memory for the gradient of input i, and whether to add to it; null if it is not wanted. It is added to one that
// exists by now: that of recompute() may deliver gradients of the same parameter before it opens its input.
std::pair<void*, bool> Grads::open(int i, DType dtype) {
  if (!wants(i)) return {nullptr, false};
  const Tape::Node& node = tape_.nodes_[node_];
  const Tape::Input& input = tape_.inputs_[node.first_input + static_cast<std::uint32_t>(i)];
  Tape::Delivery& delivery = tape_.deliveries_[static_cast<std::size_t>(i)];
  check(dtype == input.dtype, "{}: its backward treats input {} as {}; it is {}", node.name, i, to_string(dtype),
        to_string(input.dtype));
  check(!delivery.delivered, "{}: its backward delivered input {} twice; this is a bug in the op", node.name, i);
  delivery.delivered = true;
  return dispatch(dtype, [&]<class T>() -> std::pair<void*, bool> {
    if (delivery.repeat) {  // an earlier input of the op is the same tensor; both are added afterwards
      delivery.scratch = empty(Shape{input.numel}, dtype);
      return {delivery.scratch.template data<T>(), false};
    }
    if (input.parameter != nullptr) {
      check(!by_rows(i),
            "{}: parameter {} is a table whose gradient is kept by rows, so only embedding_sum() can use it", node.name,
            input.parameter->name());
      const bool add = std::exchange(input.parameter->gradient_written(), true);
      return {input.parameter->gradient_buffer().template data<T>(), add};
    }
    Tape::Slot& slot = tape_.slots_[static_cast<std::size_t>(input.slot)];
    const auto add = static_cast<bool>(slot.gradient);
    if (add) {
      slot.make_unique();
    } else {
      slot.gradient = empty(slot.shape, dtype);
    }
    return {slot.gradient.template data<T>(), add};
  });
}

const void* Grads::output(int k, DType dtype) const {
  const Tape::Node& node = tape_.nodes_[node_];
  check(k >= 0 && static_cast<std::uint32_t>(k) < node.slots,
        "{}: its backward asked for output {} of {}; this is a bug in the op", node.name, k, node.slots);
  const Tape::Slot& slot = tape_.slots_[node.first_slot + static_cast<std::uint32_t>(k)];
  if (!slot.gradient) return nullptr;
  return dispatch(dtype, [&]<class T>() -> const void* { return std::as_const(slot.gradient).template data<T>(); });
}

bool Grads::by_rows(int i) const {
  if (!wants(i)) return false;
  const Tape::Input& input = tape_.inputs_[tape_.nodes_[node_].first_input + static_cast<std::uint32_t>(i)];
  return input.parameter != nullptr && input.parameter->group() == ParamGroup::rows;
}

void Grads::pass_rows(int i, RowGradient gradient) {
  const Tape::Node& node = tape_.nodes_[node_];
  check(by_rows(i), "{}: its backward passed input {} a gradient by rows; this is a bug in the op", node.name, i);
  Tape::Delivery& delivery = tape_.deliveries_[static_cast<std::size_t>(i)];
  check(!delivery.delivered, "{}: its backward delivered input {} twice; this is a bug in the op", node.name, i);
  delivery.delivered = true;
  const Parameter& parameter = *tape_.inputs_[node.first_input + static_cast<std::uint32_t>(i)].parameter;
  parameter.row_gradients().add(std::move(gradient));
  parameter.gradient_written() = true;
}

void Grads::pass(int i, int k) {
  if (!wants(i)) return;
  // A gradient by rows cannot be passed on: open() throws the error that says so.
  if (by_rows(i)) open(i, tape_.inputs_[tape_.nodes_[node_].first_input + static_cast<std::uint32_t>(i)].dtype);
  const Tape::Node& node = tape_.nodes_[node_];
  Tape::Delivery& delivery = tape_.deliveries_[static_cast<std::size_t>(i)];
  check(!delivery.delivered, "{}: its backward delivered input {} twice; this is a bug in the op", node.name, i);
  delivery.delivered = true;
  const Tensor gradient = tape_.slots_[node.first_slot + static_cast<std::uint32_t>(k)].gradient;
  check(static_cast<bool>(gradient), "{}: its backward passed on the gradient of output {}, which has none", node.name,
        k);
  if (delivery.repeat) {
    delivery.scratch = gradient;
    return;
  }
  tape_.accumulate(tape_.inputs_[node.first_input + static_cast<std::uint32_t>(i)], gradient);
}

}  // namespace maki
