// The tape: a vector of nodes in the order in which the ops ran. Backward visits them in reverse order, so it needs no
// topological sort, no recursion and no set of visited nodes.
//
//   Tape tape;                                               // reused for all steps
//   Tensor loss = [&] { Recording on(tape); return model.loss(batch); }();
//   tape.backward(loss);                                     // from the last node to the first; empties the tape
//
// Ops record only inside the scope of a Recording. Outside, nothing is saved for backward and dropout is the identity.
//
// Gradients go to parameters. The gradient of any other tensor, an input or an intermediate result, is kept only if the
// tensor is watched:
//
//   Tensor x;
//   Tensor loss = [&] { Recording on(tape); x = tape.watch(image); return model.loss(x); }();
//   tape.backward(loss);
//   Tensor dx = tape.gradient(x);                            // until the next backward() or clear()
//
// Thread safety: a tape must be used by one thread at a time. Different threads may use different tapes at once, except
// that backward() writes to the stores of the parameters on its tape, each of which only one thread may use at a time.
//
// Lifetime: a tape must outlive its Recordings, and the stores of all parameters that were recorded must outlive the
// recorded nodes: until backward() or clear().
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
#include "autograd/recording.h"
#include "autograd/row_gradient.h"
#include "autograd/tensor.h"

namespace maki {

/// The view that a node's backward closure has of its gradients: those of the outputs to read, those of the inputs to
/// deliver. For every input that wants a gradient, the closure must deliver it exactly once, through in(), pass() or
/// pass_rows(); otherwise backward() throws Error. So it does if T is not the type of the input or output, or if the op
/// has no input i or output k. Valid only during the call of the closure.
class Grads {
 public:
  /// Whether a gradient of input i is wanted.
  bool wants(int i) const;
  /// Where to put the gradient of input i; null if it is not wanted. Calling it counts as delivery: the closure must
  /// then write (or, if `add` is set, add to) every element.
  template <class T>
  Sink<T> in(int i) {
    const auto [data, add] = open(i, dtype_of<T>());
    return {static_cast<T*>(data), add};
  }
  /// The gradient of output k, or null if there is none; closures run only if at least one output has a gradient.
  template <class T>
  const T* out(int k = 0) const {
    return static_cast<const T*>(output(k, dtype_of<T>()));
  }
  /// Delivers the gradient of output k, element by element, as that of input i. If input i is not a parameter and has
  /// no gradient yet, the memory is shared instead of copied. Requires: output k exists, has a gradient, and has the
  /// type and number of elements of input i; only the gradient is checked.
  void pass(int i, int k = 0);
  /// Whether input i is a parameter of ParamGroup::rows, whose gradient goes to pass_rows(): in() and pass() throw
  /// Error.
  bool by_rows(int i) const;
  /// Delivers the gradient of input i by rows. Requires: by_rows(i).
  void pass_rows(int i, RowGradient gradient);

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

  /// Computes the gradients of scale · loss with respect to the parameters that it was computed from. They are added to
  /// gradients written since ParameterStore::clear_gradients(), and written otherwise. The loss must have one element
  /// and have been recorded on this tape; no parameter's store may have changed since (ParameterStore::mark_changed()).
  /// Otherwise throws Error.
  ///
  /// Empties the tape, whether it returns or throws, but keeps its capacity. After an error in the middle of the pass,
  /// sums would be incomplete, so if the gradient of a parameter on this tape was written, by this pass or an earlier
  /// one, all gradients of its store are cleared.
  ///
  /// `progress` is called whenever the pass has left a node behind, with the index of the node, from the last to the
  /// first; what it throws, backward() throws.
  using Progress = std::function<void(std::size_t node)>;
  void backward(const Tensor& loss, double scale = 1, const Progress& progress = {});
  /// Backward pass from an output of any shape: computes the vector–Jacobian product of `cotangent`, which must have
  /// the output's type and number of elements. Throws Error, and clears the tape, as backward(loss) does.
  void backward(const Tensor& output, const Tensor& cotangent, const Progress& progress = {});

  /// Makes the next backward pass keep the gradient of x, for gradient(). Returns a handle to the elements of x: the
  /// gradient covers only what is computed from this handle, so use the handle instead of x from then on. x may be any
  /// float32 or float64 tensor; if it requires a gradient already (a parameter, the result of an op), that gradient is
  /// unaffected. Only a parameter of ParamGroup::rows cannot be watched: its gradient is kept by rows, and backward()
  /// throws Error. Throws Error for any other x, and unless a Recording on this tape exists.
  Tensor watch(const Tensor& x);
  /// The gradient of a tensor that watch() returned, with its shape; zeros if the output did not depend on it. Can be
  /// read after the backward() of the recording in which it was watched, until the next call of backward() or clear();
  /// the tensor returned stays valid beyond that and is not changed by later passes. Otherwise throws Error.
  Tensor gradient(const Tensor& watched) const;

  /// Removes everything recorded, and the gradients of watched tensors. Tensors that were recorded can no longer be
  /// used in a Recording without detach(). Throws Error while backward() runs.
  void clear();
  std::size_t size() const { return nodes_.size(); }  ///< number of recorded nodes

  /// The tape on which ops called on this thread are recorded, or null.
  static Tape* current();
  /// For random ops: a stream determined by the recording's context and the number of calls before this one.
  RandomStream next_stream(RandomPurpose purpose);

  /// Debugging aid. While on, searches the output of every op called in a Recording and every gradient for NaN and Inf;
  /// first_non_finite() describes the first tensor found since the last call of inspect(), or is empty. Switching it
  /// off therefore clears the description, too. For a gradient, the "node" that it names is the number of nodes on the
  /// tape.
  void inspect(bool on);
  const std::string& first_non_finite() const { return first_bad_; }
  /// Describes an op that was called inside a recording, or a node whose backward closure ran.
  struct Observed {
    const char* name;
    bool backward;
    std::size_t node;  ///< index on the tape; for an op that records nothing, that of the next node to be recorded
    std::span<const Tensor* const> inputs;  ///< of an op; empty in backward
    std::span<Tensor* const> outputs;       ///< of an op; empty in backward
  };
  /// Called after every op in a Recording, except for argmax(), one_hot() and an op that is the identity, and after
  /// every backward closure that ran, for profilers and tests. watch() is no op, but the closure of its node is one of
  /// those.
  using Observer = std::function<void(const Observed& op)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// The parameters recorded so far, with the first node that uses each of them: the gradient of a parameter is
  /// complete once backward() has left this node behind.
  std::vector<std::pair<const Parameter*, std::size_t>> first_uses() const;

 private:
  friend class Grads;
  friend class Recording;
  friend struct RecordAccess;
  friend struct RecomputeAccess;

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
    bool watches = false;  // created by watch(): the gradient of its output is kept
  };
  // A parameter whose value an op has read.
  struct Use {
    const Parameter* read;
    const Parameter* parameter;      // the same if it takes a gradient, else null
    std::uint64_t version;           // of its store when the op was recorded
    void require_unchanged() const;  // throws unless it has the values that forward has read
  };
  // An input of a node, which is a parameter or not (Use::read is null). Its gradient is wanted if it goes to a slot or
  // to a parameter.
  struct Input : Use {
    std::int32_t slot;
    std::int64_t numel;
    DType dtype;
    bool wanted() const { return slot >= 0 || parameter != nullptr; }
  };
  // The state of one input of a node while its closure runs.
  struct Delivery {
    bool repeat;  // the same tensor as an earlier input of this node: its gradient goes to scratch and is added later
    bool delivered;  // or not wanted
    Tensor scratch;
  };
  // The gradient of one output of a node.
  struct Slot {
    Tensor gradient;  // empty until one is delivered
    Shape shape;
    DType dtype;
    void make_unique();  // copies a gradient whose block is shared, so that it can be added to
  };
  // The gradient of a tensor that watch() returned: that of slot `slot` in epoch watched_epoch_. Empty if there is
  // none.
  struct Watched {
    std::int32_t slot;
    Tensor gradient;
  };
  // Bump allocator for closures. Its chunks are reused from step to step.
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

  // Scope guard of backward(): empties the tape at its end and, unless it succeeded, clears the gradients.
  struct BackwardGuard {
    explicit BackwardGuard(Tape& tape);
    ~BackwardGuard();
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
  void keep_watched(const Node& node);
  void accumulate(const Input& input, const Tensor& gradient);
  void inspect_tensor(const char* what, const char* name, const Tensor& x);

  std::vector<Node> nodes_;
  std::vector<Input> inputs_;
  std::vector<Slot> slots_;
  std::vector<Delivery> deliveries_;
  std::vector<std::pair<Use, std::size_t>> inner_uses_;  // by the ops within a node of recompute()
  Arena arena_;
  std::vector<Watched> watched_;
  std::uint64_t epoch_ = 0, watched_epoch_ = 0;
  RandomContext random_;
  Precision precision_ = Precision::float32;  // of the products recorded
  std::uint64_t random_calls_ = 0, recordings_ = 0;
  int open_recordings_ = 0;
  bool running_ = false, inspecting_ = false;
  std::string first_bad_;
  Observer observer_;
};

/// While it exists, `observer` is told about the ops called on this thread that Tape::Observer would be told about,
/// except for linear_attention() with sums, and nothing is recorded, also on the tape of an outer Recording: dropout is
/// the identity, nothing is saved for backward, and products round as in generation, unless an AsRecorded exists. So a
/// trained model can be looked into without a copy of it and without the memory of a training step. Observed::node is
/// 0. Of an Observing and a Recording, the innermost applies.
///
/// Thread safety: applies to the thread that created it, on which it must be destroyed before anything that it is
/// inside of. Whatever the observer throws, the op throws.
class Observing {
 public:
  explicit Observing(Tape::Observer observer);
  ~Observing();
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

  /// Tells the innermost object about an op that is called outside a Recording.
  static void tell(const char* name, std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs);

 private:
  Tape::Observer observer_;
  Tape* const suspended_;
  const Observing* const previous_;
};

/// Gives record() access to the internals of the tape; for no other use.
struct RecordAccess {
  template <class F>
  static void record(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs,
                     F&& closure) {
    Tape* const tape = Tape::current();
    if (tape == nullptr) return Observing::tell(name, inputs, outputs);
    check(!tape->running_, "{}: called while the tape that records it runs backward; end the Recording first", name);
    if (tape->observer_) tape->observer_({name, false, tape->size(), inputs, outputs});
    if (tape->inspecting_) {
      for (Tensor* const y : outputs) tape->inspect_tensor("output", name, *y);
    }
    if (!tape->wants(name, inputs)) return;
    check(tape->precision_ == ProductPrecision::current(),
          "{}: the Recording was begun with products in {}; got {}; begin a ProductPrecision before the Recording",
          name, to_string(tape->precision_), to_string(ProductPrecision::current()));
    using Stored = std::remove_cvref_t<F>;
    static_assert(!std::is_lvalue_reference_v<F>, "record: pass the closure as a temporary");
    tape->make_room(inputs.size(), outputs.size());  // so that push() cannot throw, which would leak the closure
    void* const object = tape->arena_.allocate(sizeof(Stored), alignof(Stored));
    new (object) Stored(std::forward<F>(closure));
    tape->push(name, outputs, inputs,
               {object, [](void* o, Grads& grads) { (*static_cast<Stored*>(o))(grads); },
                [](void* o) { static_cast<Stored*>(o)->~Stored(); }});
  }
};

/// Records an op with one output, already computed, and returns the output, now linked to the tape. backward() calls
/// `closure(Grads&)` at most once; what the closure captures is what the op saves for backward. Without a Recording, or
/// if no input requires a gradient, the closure is dropped and y is returned unchanged.
///
/// Requires: `name` is a string literal or outlives the tape. Throws Error if an input was recorded on another tape or
/// before this tape was last emptied, if the tape is running backward, or for more than 8 inputs.
template <class F>
Tensor record(const char* name, Tensor y, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
              F&& closure) {
  static constexpr std::size_t kMaxListedInputs = 8;  // more than any op here has; they are listed on the stack
  check(inputs.size() <= kMaxListedInputs, "{}: at most {} inputs can be listed; got {}", name, kMaxListedInputs,
        inputs.size());
  const Tensor* list[kMaxListedInputs];
  std::size_t n = 0;
  for (const Tensor& x : inputs) list[n++] = &x;
  Tensor* const outputs[] = {&y};
  RecordAccess::record(name, outputs, std::span<const Tensor* const>(list, n), std::forward<F>(closure));
  return y;
}

/// Records an op of any number of outputs and inputs. The outputs are linked in place.
template <class F>
void record(const char* name, std::span<Tensor* const> outputs, std::span<const Tensor* const> inputs, F&& closure) {
  RecordAccess::record(name, outputs, inputs, std::forward<F>(closure));
}

}  // namespace maki
