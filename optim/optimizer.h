// The interface of optimizers: a step updates every trainable parameter of a store from its gradient, and moments are
// kept in flat memory for checkpoints.
//
//   AdamW optimizer(store, {.weight_decay = 0.1});              // optim/adam.h
//   const double norm = grad_norm(store);                       // optim/clip.h
//   optimizer.step(schedule(s), clip_factor(norm, 1.0));        // optim/lr_schedule.h
//
// An optimizer derives from one of two classes: FlatOptimizer (optim/flat_optimizer.h), if it treats every element
// alike, or ParameterOptimizer (optim/parameter_optimizer.h), if it needs to see parameters one by one. To give it a
// name, add a row to the table in optim/make_optimizer.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "autograd/tensor.h"

namespace maki {

/// A moment of one parameter, as an optimizer declares it. The name is that of a section in checkpoint files: printable
/// ASCII without spaces, at most 31 bytes, which is checked when a checkpoint is written. Parameters may share a name;
/// they must then agree on may_be_negative.
struct MomentSpec {
  std::string name;
  Shape shape;                  ///< often, but not necessarily, the shape of the parameter
  bool may_be_negative = true;  ///< false, for example, for an average of squares: checkpoints check it
};

/// Where the moments of one name are in flat memory: one part per parameter that declares it, in the order of the flat
/// values of the store (group by group, in order of creation). Every part begins at a multiple of 64 bytes; the gaps
/// between parts are zero. If every parameter declares the moment in its own shape, parts are where the gradients are.
struct MomentLayout {
  struct Part {
    const Parameter* parameter;
    Shape shape;
    std::int64_t offset;  ///< of the first element
  };
  std::string name;
  bool may_be_negative = true;
  std::vector<Part> parts;
  std::int64_t length = 0;  ///< elements, with the padding after the last part
};

/// Moments are part of the training state, and initially zero.
struct Moment : MomentLayout {
  Tensor values;  ///< flat, of the type of the store
};

/// What an update needs to know about its step.
struct OptimizerStep {
  double learning_rate = 0;
  double grad_scale = 1;    ///< factor by which gradients are multiplied as they are read
  std::int64_t number = 1;  ///< counted from 1
};

/// For several processes that train one model together: each has all values, updates a part of them, and keeps only the
/// moments of that part.
struct OptimizerShard {
  std::vector<FlatRange> ranges;  ///< each one of Optimizer::divide(), in the order of the flat values
  std::function<void()> share;    ///< called when its values have been updated; brings the other values up to date
};

/// Divides a range that begins with a block of kNormBlock elements into consecutive ones of nearly equal size; all but
/// the last end with a block.
std::vector<FlatRange> even_ranges(FlatRange range, int parts);

/// Thread safety: none; an optimizer and its store must be used by one thread at a time.
///
/// Tables (ParamGroup::rows) are updated by the rule of optim/row_rule.h, whatever the optimizer: only the rows that
/// have a gradient are read and written. The rule has a moment of its own, which comes after those of the optimizer in
/// moments() and moment_layouts().
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates all trainable parameters with `grad_scale` times the gradients of the store; gradients that were not
  /// written count as zero. Weight decay applies to ParamGroup::decay only. Calls mark_changed() of the store before,
  /// and clear_gradients() afterwards. A learning rate of 0 changes moments but, if gradients are finite, no values.
  /// Throws Error unless both numbers are finite and not negative and the store is sealed; OutOfMemoryError in the
  /// first step if there is no memory for the moments, and in any step for update_bytes(). Values and moments are then
  /// as they were, unless the shard has several ranges. If an update itself has no memory left (sums of gradients by
  /// rows need some in every step), OutOfMemoryError leaves a part of the parameters updated, and steps() as it was.
  void step(double learning_rate, double grad_scale = 1);

  /// The moments, in the order in which parameters declare them, which never changes. Together with steps() they are
  /// the complete state between two steps. Loading a checkpoint writes into these tensors. The first call, or the first
  /// step, allocates them. Throws Error if the store is not sealed, OutOfMemoryError, and what moment_layouts() throws.
  std::vector<Moment>& moments();
  const std::vector<Moment>& moments() const;
  /// The layouts of the moments, without allocating memory for values; the store need not be sealed. Throws Error if
  /// parameters disagree on may_be_negative of a moment, or if one declares a moment twice.
  std::vector<MomentLayout> moment_layouts() const;

  /// Whether all parameters with a flat gradient can be divided anywhere, because an update of one element looks at no
  /// other.
  bool is_elementwise() const;
  /// Divides a range of ParameterStore::trainable() into consecutive ranges, as equal as possible, each of which can be
  /// updated without the others. A block of kNormBlock elements (optim/clip.h) belongs to two of them at most.
  /// Requires: assign_offsets() was called on the store; unless is_elementwise(), it is the whole range.
  std::vector<FlatRange> divide(FlatRange range, int parts) const;
  /// From now on, step() updates of the flat gradients only those in the ranges of the shard, and no memory of moments
  /// is used beyond them (their tensors have all elements). Tables are updated as before. Throws Error if there are
  /// moments already.
  void keep_shard(OptimizerShard shard);
  /// Sets the moments beyond these ranges to zero, and returns their memory, if the caller has written to them.
  void drop_other_shards();
  /// The elements of a moment's values that belong to parameters in a range of the flat values.
  static FlatRange part_of(const MomentLayout& moment, FlatRange range);

  /// The most memory that an update takes beside values, gradients and moments.
  virtual std::int64_t update_bytes() const { return 0; }

  /// The learning rate of ParamGroup::rows, relative to that of the others; initially 1. Throws Error unless it is
  /// finite and not negative.
  void set_row_rate(double factor);

  std::int64_t steps() const { return steps_; }  ///< number of steps taken; bias correction depends on it
  void set_steps(std::int64_t steps);            ///< for loading a checkpoint; throws Error if negative

  ParameterStore& store() { return store_; }
  const ParameterStore& store() const { return store_; }

 protected:
  /// The store need not be sealed yet. Requires: it outlives the optimizer.
  explicit Optimizer(ParameterStore& store) : store_(store) {}

  /// The moments that an optimizer keeps for this parameter of group `decay` or `no_decay`; it is not asked about
  /// others. Must return the same list on every call.
  virtual std::vector<MomentSpec> moments_of(const Parameter& parameter) const = 0;
  /// Whether each element of a parameter is updated without a look at the others, so that a part of it can be. Its
  /// moments then have its shape.
  virtual bool updates_elements_of(const Parameter& parameter) const = 0;
  /// Updates values and moments of this range. Moments are allocated, and no gradient of the store is left unwritten.
  virtual void update(const OptimizerStep& step, FlatRange range) = 0;

 private:
  void update_rows(double learning_rate, double grad_scale);

  ParameterStore& store_;
  std::optional<OptimizerShard> shard_;
  double row_rate_ = 1;
  mutable std::optional<std::vector<Moment>> moments_;  // allocated when first used
  mutable std::vector<Storage> pages_;                  // of the moments of a shard
  std::int64_t steps_ = 0;
};

}  // namespace maki
