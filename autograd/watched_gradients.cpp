// Gradients of tensors that are not parameters. A watched tensor is the output of a node that computes nothing: when
// the backward pass arrives there, all nodes that used the tensor have run, so the gradient in its slot is complete.
#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/tape.h"

namespace maki {

Tensor Tape::watch(const Tensor& x) {
  check(open_recordings_ > 0 && !running_,
        "watch: there is no Recording on this tape; watch a tensor inside the scope that records what is computed from "
        "it");
  check(x && x.dtype() != DType::int32, "watch: the tensor must be float32 or float64; got {}",
        x ? to_string(x.dtype()) : "an empty tensor");
  const Tensor* const inputs[] = {&x};
  wants("watch", inputs);  // throws if x was recorded elsewhere; the node is needed in any case
  make_room(1, 1);
  Tensor handle = x.detach();
  Tensor* const outputs[] = {&handle};
  // The gradient is passed on if x requires one itself. If x is a frozen parameter, it must not change either.
  push("watch", outputs, inputs, {nullptr, [](void*, Grads& grads) { grads.pass(0); }, [](void*) {}});
  nodes_.back().watches = true;
  return handle;
}

// Called for every watching node, after its closure has run, if it has a gradient at all: without one, an empty tensor
// is kept, for which gradient() returns zeros.
void Tape::keep_watched(const Node& node) {
  watched_.push_back({static_cast<std::int32_t>(node.first_slot), std::move(slots_[node.first_slot].gradient)});
}

Tensor Tape::gradient(const Tensor& watched) const {
  const auto found = std::ranges::find(watched_, watched.link().slot, &Watched::slot);
  check(watched.link().epoch == watched_epoch_ && found != watched_.end(),
        "gradient: the tensor, of shape {}, is not one that watch() returned in the recording of this tape's last "
        "backward pass; watch it in that recording, and read its gradient before the next backward() or clear()",
        watched.shape());
  if (!found->gradient) return zeros(watched.shape(), watched.dtype());
  // The shape may differ: a view of the tensor delivered the gradient, or a view is what the caller asks for.
  return reshape(found->gradient, watched.shape());
}

}  // namespace maki
