#include "autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/parameter.h"

namespace maki {
namespace {

std::uint64_t next_epoch() {
  static std::atomic<std::uint64_t> counter = 0;
  return ++counter;
}

// to += from or, without `add`, to = from.
void add_into(const Tensor& from, void* to, bool add) {
  dispatch(from.dtype(), [&]<class T>() {
    const T* const source = from.data<T>();
    T* const target = static_cast<T*>(to);
    parallel_ranges(from.numel(), 1, [&](std::int64_t begin, std::int64_t end) {
      if (!add) {
        std::copy(source + begin, source + end, target + begin);
      } else {
        for (std::int64_t i = begin; i < end; ++i) target[i] += source[i];
      }
    });
  });
}

bool finite(const Tensor& x) {
  if (x.dtype() == DType::int32) return true;
  return dispatch(x.dtype(), [&]<class T>() {
    const std::span<const T> values = x.values<T>();
    return std::all_of(values.begin(), values.end(), [](T value) { return std::isfinite(value); });
  });
}

}  // namespace

Tape::Tape() : epoch_(next_epoch()) {}
Tape::~Tape() { release(); }

RandomStream Tape::next_stream(RandomPurpose purpose) {
  return RandomStream(random_.seed, purpose, random_.step, random_.micro_batch, random_calls_++);
}

void Tape::inspect(bool on) {
  inspecting_ = on;
  first_bad_.clear();
}

void Tape::inspect_tensor(const char* what, const char* name, const Tensor& x) {
  if (!first_bad_.empty() || finite(x)) return;
  first_bad_ = fmt::format("{} of {} (node {}, shape {})", what, name, nodes_.size(), x.shape());
}

void* Tape::Arena::allocate(std::size_t bytes, std::size_t alignment) {
  static constexpr std::size_t kChunkBytes = 64 << 10;  // room for many closures, which mostly hold handles and sizes
  for (;; ++chunk_, used_ = 0) {
    if (chunk_ == chunks_.size()) {
      const std::size_t size = std::max(kChunkBytes, bytes + alignment);
      chunks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[size]), size});
    }
    std::byte* const memory = chunks_[chunk_].memory.get();
    const std::size_t misaligned = (reinterpret_cast<std::uintptr_t>(memory) + used_) % alignment;
    const std::size_t begin = used_ + (misaligned == 0 ? 0 : alignment - misaligned);
    if (begin + bytes > chunks_[chunk_].size) continue;
    used_ = begin + bytes;
    return memory + begin;
  }
}

bool Tape::wants(const char* name, std::span<const Tensor* const> inputs) const {
  bool wanted = false;
  for (const Tensor* const x : inputs) {
    check(x->link().slot < 0 || x->link().epoch == epoch_,
          "{}: an input of shape {} was recorded on another tape, or on this one before backward() or clear(); "
          "detach() it first",
          name, x->shape());
    wanted = wanted || x->requires_grad();
  }
  return wanted;
}

namespace {

// Reserves room for n more elements. Grows geometrically, as push_back() does; a plain reserve() might not.
template <class Vector>
void reserve_more(Vector& v, std::size_t n) {
  if (v.capacity() - v.size() < n) v.reserve(std::max(2 * v.capacity(), v.size() + n));
}

}  // namespace

void Tape::make_room(std::size_t inputs, std::size_t outputs) {
  reserve_more(nodes_, 1);
  reserve_more(inputs_, inputs);
  reserve_more(slots_, outputs);
}

void Tape::push(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs,
                Closure closure) {
  nodes_.push_back({name, static_cast<std::uint32_t>(inputs_.size()), static_cast<std::uint32_t>(inputs.size()),
                    static_cast<std::uint32_t>(slots_.size()), static_cast<std::uint32_t>(outputs.size()), closure,
                    /*watches=*/false});
  for (const Tensor* const x : inputs) {
    const Parameter* const read = x->link().value_of;
    const std::uint64_t version = read == nullptr ? 0 : read->version();
    inputs_.push_back({{read, x->link().parameter(), version}, x->link().slot, x->numel(), x->dtype()});
  }
  for (Tensor* const y : outputs) {
    y->set_link({.epoch = epoch_, .slot = static_cast<std::int32_t>(slots_.size())});
    slots_.push_back({{}, y->shape(), y->dtype()});
  }
}

std::vector<std::pair<const Parameter*, std::size_t>> Tape::first_uses() const {
  std::vector<std::pair<const Parameter*, std::size_t>> uses;
  const auto add = [&](const Use& use, std::size_t node) {
    if (use.parameter != nullptr) uses.emplace_back(use.parameter, node);
  };
  for (const auto& [use, node] : inner_uses_) add(use, node);
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    for (std::uint32_t i = 0; i < nodes_[node].inputs; ++i) add(inputs_[nodes_[node].first_input + i], node);
  }
  std::ranges::sort(uses, [](const auto& a, const auto& b) {
    return a.first != b.first ? std::less<>()(a.first, b.first) : a.second < b.second;
  });
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  uses.erase(std::unique(uses.begin(), uses.end(), same), uses.end());
  return uses;
}

void Tape::clear() {
  check(!running_, "tape: cannot be cleared while it runs backward");
  watched_.clear();
  release();
}

// Destroys closures from the last to the first, so that activations return to the pool in the same order as in
// backward().
void Tape::release() noexcept {
  while (!nodes_.empty()) {
    const Closure closure = nodes_.back().closure;
    nodes_.pop_back();
    if (closure.object != nullptr) closure.destroy(closure.object);
  }
  inputs_.clear();
  slots_.clear();
  deliveries_.clear();
  inner_uses_.clear();
  arena_.reset();
  running_ = false;
  epoch_ = next_epoch();
}

// Clears the gradients of every store that has one for a parameter on this tape: of all its parameters, not only those.
void Tape::drop_gradients() noexcept {
  const auto drop = [](const Use& use) {
    if (use.parameter != nullptr && use.parameter->gradient_written()) use.parameter->clear_store_gradients();
  };
  for (const Input& input : inputs_) drop(input);
  for (const auto& use : inner_uses_) drop(use.first);
}

Tape::BackwardGuard::BackwardGuard(Tape& of) : tape(of) {
  check(!tape.running_, "backward: the tape is already running backward");
  tape.watched_.clear();
}
Tape::BackwardGuard::~BackwardGuard() {
  if (!succeeded && tape.running_) {
    tape.watched_.clear();
    tape.drop_gradients();
  }
  tape.release();
}

void Tape::backward(const Tensor& loss, double scale, const Progress& progress) {
  const BackwardGuard unwinding(*this);
  check(loss.numel() == 1, "backward: the loss must have one element; got shape {}", loss.shape());
  backward(loss, full(loss.shape(), loss.dtype(), scale), progress);
}

void Tape::backward(const Tensor& output, const Tensor& cotangent, const Progress& progress) {
  BackwardGuard unwinding(*this);
  check(output.link().slot >= 0,
        "backward: the loss was not recorded; compute it inside a Recording, from at least one parameter that is not "
        "frozen");
  check(output.link().epoch == epoch_,
        "backward: the loss was recorded on another tape, or this tape was cleared or consumed by backward() since; "
        "record it again");
  check(cotangent.numel() == output.numel() && cotangent.dtype() == output.dtype(),
        "backward: the cotangent must have the type and size of the output, {} {}; got {} {}",
        to_string(output.dtype()), output.shape(), to_string(cotangent.dtype()), cotangent.shape());

  running_ = true;
  const ProductPrecision rounding(precision_);
  watched_epoch_ = epoch_;
  slots_[static_cast<std::size_t>(output.link().slot)].gradient = cotangent.detach();
  for (std::size_t node = nodes_.size(); node-- > 0;) {
    run(node);
    if (progress) progress(node);
  }
  unwinding.succeeded = true;
}

void Tape::run(std::size_t index) {
  Node& node = nodes_[index];
  const std::span<Slot> outputs(slots_.data() + node.first_slot, node.slots);
  if (std::ranges::any_of(outputs, [](const Slot& slot) { return static_cast<bool>(slot.gradient); })) {
    settle(node);
    Grads grads(*this, index);
    node.closure.run(node.closure.object, grads);
    finish(node);
    if (observer_) observer_({node.name, true, index, {}, {}});
  }
  node.closure.destroy(node.closure.object);
  node.closure.object = nullptr;
  if (node.watches) keep_watched(node);
  for (Slot& slot : outputs) slot.gradient = {};
}

void Tape::Use::require_unchanged() const {
  if (read == nullptr) return;
  check(read->version() == version, "backward: parameter {} was updated after it was recorded; record the step again",
        read->name());
}

// Decides before the closure runs which gradients are collected in scratch: all of a tensor but that of its first
// place. The result then does not depend on the order in which the closure delivers them.
void Tape::settle(const Node& node) {
  deliveries_.clear();
  const std::span<const Input> inputs(inputs_.data() + node.first_input, node.inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    Delivery delivery{.repeat = false, .delivered = !input.wanted(), .scratch = {}};
    input.require_unchanged();
    for (std::size_t j = 0; j < i && input.wanted(); ++j) {
      if (inputs[j].slot == input.slot && inputs[j].parameter == input.parameter) delivery.repeat = true;
    }
    deliveries_.push_back(std::move(delivery));
  }
}

void Tape::finish(const Node& node) {
  for (std::uint32_t i = 0; i < node.inputs; ++i) {
    const Input& input = inputs_[node.first_input + i];
    Delivery& delivery = deliveries_[i];
    check(delivery.delivered, "{}: its backward delivered no gradient for input {}; this is a bug in the op", node.name,
          i);
    if (delivery.scratch) accumulate(input, std::exchange(delivery.scratch, Tensor()));
  }
  if (!inspecting_) return;
  for (std::uint32_t i = 0; i < node.inputs; ++i) {
    const Input& input = inputs_[node.first_input + i];
    if (input.parameter != nullptr) {
      inspect_tensor("gradient", input.parameter->name().c_str(), input.parameter->gradient());
    } else if (input.slot >= 0) {
      inspect_tensor("input gradient", node.name, slots_[static_cast<std::size_t>(input.slot)].gradient);
    }
  }
}

// Adds a gradient to that of an input. Blocks that other handles share, as Grads::pass() makes them, are never
// modified.
void Tape::accumulate(const Input& input, const Tensor& gradient) {
  if (input.parameter != nullptr) {
    bool& written = input.parameter->gradient_written();
    Tensor& buffer = input.parameter->gradient_buffer();
    dispatch(buffer.dtype(), [&]<class T>() { add_into(gradient, buffer.data<T>(), written); });
    written = true;
    return;
  }
  Slot& slot = slots_[static_cast<std::size_t>(input.slot)];
  if (!slot.gradient) {
    slot.gradient = gradient;
    return;
  }
  slot.make_unique();
  dispatch(slot.dtype, [&]<class T>() { add_into(gradient, slot.gradient.data<T>(), true); });
}

void Tape::Slot::make_unique() {
  if (!gradient.shared()) return;
  Tensor copy = empty(gradient.shape(), dtype);
  dispatch(dtype, [&]<class T>() { add_into(gradient, copy.data<T>(), false); });
  gradient = copy;
}

}  // namespace maki
