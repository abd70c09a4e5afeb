// The tape: one vector of nodes in the order they ran, so reverse order is the schedule. No sort, no recursion, no hash
// set.
//
//   Tape tape;                                               // one for the run
//   Tensor loss = [&] { Recording on(tape); return model.loss(batch); }();
//   tape.backward(loss);                                     // consumes the tape, last node to first
//
// Recording is opt-in by scope: without it there is no graph, no saved activation and no dropout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "autograd/core/sink.h"
#include "autograd/tensor.h"

namespace maki {

class Tape;

/// What the random ops of a recording draw from, together with their call number: a recording that begins on an empty
/// tape counts its calls from 0, one that adds to what is on the tape continues the count.
struct RandomContext {
  std::uint64_t seed = 0, step = 0, micro_batch = 0;
};

/// Ops called on this thread are recorded on `tape` until the scope ends. Scopes may nest; the innermost one holds. A
/// scope that is left by an exception clears the tape, so that nothing of a failed step stays in memory.
class Recording {
 public:
  /// Every recording of a tape draws random numbers of its own: `step` of its context is the number of such recordings
  /// before it on this tape. A run that must continue exactly after a restart gives its own context instead.
  explicit Recording(Tape& tape);
  /// Draws from the given context; the same context on an empty tape gives the same dropout masks.
  Recording(Tape& tape, const RandomContext& random);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Tape& tape_;
  Tape* const previous_;
  RandomContext outer_random_;
  const int exceptions_;  // in flight when the scope began
};

/// Ops called on this thread round as they do in a Recording, though nothing is recorded: an evaluation sees the loss
/// that training sees, at its speed. Outside of both, where AMX has a faster chain for products of float32 (gemm.h),
/// they keep to the plain one, which is as fast for the few rows of generation.
class AsRecorded {
 public:
  AsRecorded();
  ~AsRecorded();
  AsRecorded(const AsRecorded&) = delete;
  AsRecorded& operator=(const AsRecorded&) = delete;

 private:
  bool before_;
};

/// Whether a Recording or an AsRecorded is on.
bool rounds_as_recorded();

/// What a node's backward closure sees: its outputs' gradients and its inputs' sinks. A closure must deliver the
/// gradient of every wanted input exactly once, by writing the sink or by pass().
class Grads {
 public:
  /// Is the gradient of input i wanted?
  bool wants(int i) const;
  /// The sink of input i, null where nobody wants it. Every beta was settled before the closure ran.
  template <class T>
  Sink<T> in(int i) {
    const auto [data, add] = open(i, dtype_of<T>());
    return {static_cast<T*>(data), add};
  }
  /// The gradient of output k; null when none came (a node runs only if at least one of its outputs has one).
  template <class T>
  const T* out(int k = 0) const {
    return static_cast<const T*>(output(k, dtype_of<T>()));
  }
  /// The gradient of input i is the gradient of output k, element by element: no copy where the sink is still empty.
  void pass(int i, int k = 0);

 private:
  friend class Tape;
  Grads(Tape& tape, std::size_t node) : tape_(tape), node_(node) {}
  std::pair<void*, bool> open(int i, DType dtype);
  const void* output(int k, DType dtype) const;

  Tape& tape_;
  std::size_t node_;
};

class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Gradients of scale · loss, into the parameters it was computed from: added where this step wrote before, written
  /// otherwise. The loss has one element and was recorded here. Leaves the tape empty, with its capacity, also on an
  /// error. An error halfway leaves sums that are half added, so it also clears all gradients of the parameter stores
  /// involved, those of earlier backward passes included.
  void backward(const Tensor& loss, double scale = 1);
  /// The same for any output and its cotangent, of equal shape: the product cotangent · Jacobian.
  void backward(const Tensor& output, const Tensor& cotangent);
  /// Forgets everything recorded. Throws while backward runs.
  void clear();
  std::size_t size() const { return nodes_.size(); }

  /// The tape that ops on this thread record on, or null.
  static Tape* current();
  /// The stream of the next random op: a function of the recording's context and the number of such calls before it.
  RandomStream next_stream(Purpose purpose);

  /// While on, every recorded output and every gradient is searched for NaN and Inf; first_bad() then names the first
  /// one found, or is empty. For finding the culprit by running a step again.
  void inspect(bool on);
  const std::string& first_bad() const { return first_bad_; }
  /// An op that was just called on a recording, or a node whose backward just ran.
  struct Observed {
    const char* name;
    bool backward;
    std::size_t node;  ///< its number on the tape; an op that records nothing has that of the next that does
    std::span<const Tensor* const> inputs;  ///< of a call; none in backward
    std::span<Tensor* const> outputs;
  };
  /// Called after every op and after every node's backward: for profiles and tests.
  using Observer = std::function<void(const Observed& op)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  friend class Grads;
  friend class Recording;
  friend struct RecordAccess;

  // Type-erased closure: what to run, and how to destroy it.
  struct Closure {
    void* object = nullptr;
    void (*run)(void*, Grads&) = nullptr;
    void (*destroy)(void*) = nullptr;
  };
  struct Node {
    const char* name;
    std::uint32_t first_input, inputs, first_slot, slots;
    Closure closure;
  };
  // An input is wanted when it has a slot or a parameter. Repeats of an earlier input of the same node collect in
  // scratch.
  struct Input {
    std::int32_t slot;
    const Parameter* parameter;
    std::uint64_t version;
    std::int64_t numel;
    DType dtype;
    bool wanted() const { return slot >= 0 || parameter != nullptr; }
  };
  // The state of a node's input while its closure runs.
  struct Delivery {
    bool repeat, add, delivered;
    Tensor scratch;
  };
  struct Slot {
    Tensor gradient;  // none until somebody sends one
    Shape shape;
    DType dtype;
    void make_unique();  // copies a block that others hold too, before it is added to
  };
  // Bump allocator for closures: chunks are kept from step to step.
  class Arena {
   public:
    void* allocate(std::size_t bytes, std::size_t alignment);
    void reset() { chunk_ = used_ = 0; }

   private:
    struct Chunk {
      std::unique_ptr<std::byte[]> memory;
      std::size_t size;
    };
    std::vector<Chunk> chunks_;
    std::size_t chunk_ = 0, used_ = 0;
  };

  // What backward leaves behind, however it ends: an empty tape and, unless it succeeded, no gradients.
  struct Unwinding {
    explicit Unwinding(Tape& tape);
    ~Unwinding();
    Tape& tape;
    bool succeeded = false;
  };

  bool wants(const char* name, std::span<const Tensor* const> inputs) const;
  void make_room(std::size_t inputs, std::size_t outputs);
  void push(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs, Closure closure);
  void release() noexcept;
  void drop_gradients() noexcept;
  void run(std::size_t node);
  void settle(const Node& node);
  void finish(const Node& node);
  void accumulate(const Input& input, const Tensor& gradient);
  void inspect_tensor(const char* what, const char* name, const Tensor& x);

  std::vector<Node> nodes_;
  std::vector<Input> inputs_;
  std::vector<Slot> slots_;
  std::vector<Delivery> deliveries_;
  Arena arena_;
  std::uint64_t epoch_ = 0;
  RandomContext random_;
  std::uint64_t random_calls_ = 0, recordings_ = 0;
  int open_recordings_ = 0;
  bool running_ = false, inspecting_ = false;
  std::string first_bad_;
  Observer observer_;
};

/// The only door through which ops reach the tape's internals.
struct RecordAccess {
  template <class F>
  static void record(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs,
                     F&& closure) {
    Tape* const tape = Tape::current();
    if (tape == nullptr) return;
    check(!tape->running_, "{}: called while the tape that records it runs backward; end the Recording first", name);
    if (tape->inspecting_) {
      for (Tensor* const y : outputs) tape->inspect_tensor("output", name, *y);
    }
    if (tape->observer_) tape->observer_({name, false, tape->size(), inputs, outputs});
    if (!tape->wants(name, inputs)) return;
    using Stored = std::remove_cvref_t<F>;
    static_assert(!std::is_lvalue_reference_v<F>, "record: give the closure as a temporary");
    tape->make_room(inputs.size(), outputs.size());  // push() must not throw: it would leak the closure
    void* const object = tape->arena_.allocate(sizeof(Stored), alignof(Stored));
    new (object) Stored(std::forward<F>(closure));
    tape->push(name, outputs, inputs,
               {object, [](void* o, Grads& grads) { (*static_cast<Stored*>(o))(grads); },
                [](void* o) { static_cast<Stored*>(o)->~Stored(); }});
  }
};

/// Records an op of one output and returns it, now linked to the tape. `closure(Grads&)` runs in backward, at most
/// once; it saves exactly what it captures. Without a recording, or when no input requires a gradient, the closure is
/// dropped unused.
template <class F>
Tensor record(const char* name, Tensor y, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
              F&& closure) {
  static constexpr std::size_t kMost = 8;
  check(inputs.size() <= kMost, "{}: at most {} inputs in a list; got {}", name, kMost, inputs.size());
  const Tensor* list[kMost];
  std::size_t n = 0;
  for (const Tensor& x : inputs) list[n++] = &x;
  Tensor* const outputs[] = {&y};
  RecordAccess::record(name, outputs, std::span<const Tensor* const>(list, n), std::forward<F>(closure));
  return y;
}

/// The same for any number of outputs and inputs.
template <class F>
void record(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs, F&& closure) {
  RecordAccess::record(name, outputs, inputs, std::forward<F>(closure));
}

}  // namespace maki
