#include "autograd/recompute.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/parallel.h"
#include "autograd/parameter.h"

namespace maki {

// Random numbers depend on the context of the recording and on the number of random ops before, so a tape that
// continues at the same place draws the same ones.
struct RecomputeAccess {
  struct Place {
    RandomContext random;
    std::uint64_t calls;
  };
  static Place place(const Tape& tape) { return {tape.random_, tape.random_calls_}; }
  static void move_to(Tape& tape, std::uint64_t calls) { tape.random_calls_ = calls; }

  // Tape::inspect(): the ops of the inner tape are searched if those of the outer one are, which names the first tensor
  // that either of them has found.
  static void inspect_like(const Tape& outer, Tape& inner) { inner.inspect(outer.inspecting_); }
  static void report(Tape& outer, const Tape& inner) {
    if (outer.first_bad_.empty()) outer.first_bad_ = inner.first_bad_;
  }

  // Of the parameters that the ops within read, also those within a recompute() among them.
  using Uses = std::vector<Tape::Use>;
  static Uses uses(const Tape& tape) {
    Uses list;
    for (const Tape::Input& input : tape.inputs_) {
      if (input.read != nullptr) list.push_back(input);
    }
    for (const auto& inner : tape.inner_uses_) list.push_back(inner.first);
    return list;
  }
  static void add_uses(Tape& outer, const Uses& of_last_node) {
    for (const Tape::Use& use : of_last_node) outer.inner_uses_.emplace_back(use, outer.size() - 1);
  }
};

namespace {

using Function = std::function<Tensor(const Tensor&)>;

// What the first forward pass leaves for backward.
struct Replay {
  Tape* outer;  // which owns this
  Function f;
  Tensor x;
  RecomputeAccess::Place place;
  RecomputeAccess::Uses uses;

  void operator()(Grads& grads) const {
    for (const auto& use : uses) use.require_unchanged();
    Tape tape;
    RecomputeAccess::inspect_like(*outer, tape);
    Tensor input, output;
    {
      const Recording on(tape, place.random);
      RecomputeAccess::move_to(tape, place.calls);
      input = tape.watch(x);
      output = f(input);
    }
    dispatch(output.dtype(), [&]<class T>() {
      Tensor cotangent = empty_like(output);
      std::copy_n(grads.out<T>(), output.numel(), cotangent.data<T>());
      tape.backward(output, cotangent);
      RecomputeAccess::report(*outer, tape);
      const Tensor gradient = tape.gradient(input);
      const Sink<T> sink = grads.in<T>(0);
      const T* const from = gradient.data<T>();
      parallel_ranges(gradient.numel(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) sink.put(i, from[i]);
      });
    });
  }
};

}  // namespace

Tensor recompute(const Tensor& x, const Function& f) {
  Tape* const outer = Tape::current();
  if (outer == nullptr || !x.requires_grad()) return f(x);
  Replay replay{outer, f, x.detach(), RecomputeAccess::place(*outer), {}};
  Tape tape;
  RecomputeAccess::inspect_like(*outer, tape);
  Tensor y;
  {
    const Recording on(tape, replay.place.random);
    RecomputeAccess::move_to(tape, replay.place.calls);
    y = f(tape.watch(replay.x)).detach();  // watched, so that ops of frozen parameters are recorded as in backward
    RecomputeAccess::move_to(*outer, RecomputeAccess::place(tape).calls);
  }
  RecomputeAccess::report(*outer, tape);
  const auto uses = replay.uses = RecomputeAccess::uses(tape);
  tape.clear();
  y = record("recompute", y, {x}, std::move(replay));
  RecomputeAccess::add_uses(*outer, uses);
  return y;
}

}  // namespace maki
