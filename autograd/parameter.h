// Parameters and their store. Parameters are created only by a store, each with a name. The store owns names, values
// and gradients; seal() lays out all values in one flat block and all gradients in another, in order of creation within
// each group. Every parameter starts at a multiple of 64 bytes and is padded with zeros, so that optimizers, norms and
// checkpoints are loops over flat memory.
//
// Thread safety: none, except that several threads may read values as long as none changes them. A store, its
// parameters and the tapes on which they are recorded must be used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/core/bfloat16.h"
#include "autograd/core/int8_matrix.h"
#include "autograd/core/philox.h"
#include "autograd/row_gradient.h"
#include "autograd/tensor.h"

namespace maki {

/// Computes the initial value of element `index`. `stream` belongs to the parameter, so a value drawn from it at
/// `index` depends on (seed, name, index) alone. Called concurrently by several threads, so it must be thread-safe.
using Initializer = std::function<double(const RandomStream& stream, std::uint64_t index)>;
namespace init {
Initializer constant(double value);
Initializer normal(double std);     ///< normally distributed with mean 0
Initializer uniform(double bound);  ///< uniform in [-bound, bound)
/// Copies the elements of `source`, in order. If there are too few, seal() throws Error; further ones are ignored.
Initializer values(const Tensor& source);
}  // namespace init

/// How the optimizer treats a parameter: weight decay applies to `decay` only; `frozen` parameters are not trained and
/// have neither gradients nor moments; `rows` are large tables [R, C] of which a step uses and updates few rows
/// (embedding_sum() in autograd/ops.h, optim/row_rule.h).
enum class ParamGroup : std::uint8_t { decay, no_decay, frozen, rows };
/// In the order of the flat block.
inline constexpr std::array kParamGroups = {ParamGroup::decay, ParamGroup::no_decay, ParamGroup::rows,
                                            ParamGroup::frozen};
constexpr const char* to_string(ParamGroup group) {
  constexpr std::array kNames = {"decay", "no_decay", "frozen", "rows"};
  return kNames[static_cast<std::size_t>(group)];
}

class ParameterStore;

/// A named tensor of a model. It is part of its store and refers to it, so it must not be used after the store is
/// destroyed.
class Parameter {
 public:
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  ParamGroup group() const { return group_; }
  bool trainable() const { return group_ != ParamGroup::frozen; }
  /// How many matrices of linear maps are stacked along the first axis: 1 in a weight [out, in], 3 in that of packed
  /// q‖k‖v. An optimizer with a rule for matrices, such as Muon, applies it to each of them. 0: the parameter is no
  /// such map between hidden layers, but a vector, a table that is read row by row, or an output layer.
  std::int64_t matrices() const { return matrices_; }
  /// Whether every token is multiplied by all of it, so that it counts in ParameterStore::multiplied_numel(). At first
  /// true; false for a table of which a token reads rows, and for what an estimate of arithmetic leaves out.
  bool multiplied() const { return multiplied_; }
  void set_multiplied(bool multiplied) { multiplied_ = multiplied; }
  /// Whether its gradient has all elements and is part of ParameterStore::gradients(): not frozen, not `rows`.
  bool has_flat_gradient() const { return group_ == ParamGroup::decay || group_ == ParamGroup::no_decay; }
  /// Index of its first element in the store's flat block of values; 0 before ParameterStore::assign_offsets().
  std::int64_t offset() const { return offset_; }

  /// The value. Unless the parameter is frozen, ops that are recorded with this tensor send its gradient here. Throws
  /// Error before seal().
  const Tensor& value() const;
  operator const Tensor&() const { return value(); }  // NOLINT: a parameter is used as the tensor it holds

  /// The gradient accumulated since ParameterStore::clear_gradients(), with the shape of the value; zeros if no
  /// backward pass wrote one. It may share the store's memory, which later steps overwrite. Throws Error for a frozen
  /// parameter.
  Tensor gradient() const;
  /// The gradient accumulated for a parameter of ParamGroup::rows, without the rows that no backward pass used; empty
  /// if there was none, and for other groups.
  RowGradient row_gradient() const { return row_gradients_.sum(); }
  /// ParameterStore::version(): changes whenever values of the store change, so it identifies data derived from a
  /// value.
  std::uint64_t version() const;
  /// The value in the store's rounded copy (ParameterStore::keep_rounded_values()); null unless there is one that
  /// agrees with the value and has this parameter.
  const BFloat16* rounded() const;
  /// The value in the store's 8-bit copy (ParameterStore::keep_int8_values()); null unless there is one that agrees
  /// with the value and has this parameter.
  const Int8Matrix* int8() const;

  /// For the tape: the memory of the gradient, and whether it was written since the gradients were cleared.
  Tensor& gradient_buffer() const { return gradient_; }
  bool& gradient_written() const { return written_; }
  RowGradients& row_gradients() const { return row_gradients_; }
  /// For the tape: discards all gradients of the store after a backward pass that failed.
  void clear_store_gradients() const noexcept;

 private:
  friend class ParameterStore;
  Parameter(ParameterStore& store, std::string name, const Shape& shape, ParamGroup group, std::int64_t matrices,
            Initializer init);
  Int8Matrix int8_sizes() const;  // of the 8-bit copy; 0 if there is none of this parameter

  ParameterStore& store_;
  std::string name_;
  Shape shape_;
  ParamGroup group_;
  std::int64_t matrices_;
  bool multiplied_ = true;
  Initializer init_;
  std::int64_t offset_ = 0;
  Int8Matrix int8_;
  Tensor value_;
  mutable Tensor gradient_;
  mutable bool written_ = false;
  mutable RowGradients row_gradients_;  // instead of gradient_, for ParamGroup::rows
};

/// Elements [begin, end) of the flat block.
struct FlatRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// How many elements a part of so many takes in a flat block: every part begins at a multiple of 64 bytes.
std::int64_t padded_numel(std::int64_t elements, DType dtype);

class ParameterStore {
 public:
  explicit ParameterStore(DType dtype = DType::float32);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  DType dtype() const { return dtype_; }

  /// Creates a parameter; the reference stays valid as long as the store. Without a group, parameters of two or more
  /// dimensions are put in ParamGroup::decay, others in ParamGroup::no_decay. For `matrices` see Parameter::matrices().
  /// Throws Error if the name is empty or taken, if `init` is empty, if the store is sealed, unless `matrices` is 0 or
  /// divides the rows of a shape with two axes, and unless a parameter of ParamGroup::rows has two axes.
  Parameter& add(const std::string& name, const Shape& shape, Initializer init,
                 std::optional<ParamGroup> group = std::nullopt, std::int64_t matrices = 0);
  /// Puts a parameter of this store in ParamGroup::frozen; its initial value stays what it would have been. Throws
  /// Error for one of another store and if the store is sealed. Call before assign_offsets().
  void freeze(Parameter& parameter);
  /// Assigns every parameter its offset and every group its range without allocating memory; seal() calls it. Throws
  /// Error unless all parameters together, padding included, have fewer than 2^58 elements.
  void assign_offsets();
  /// Allocates values and gradients and draws the initial values; no parameter can be added afterwards. Throws Error if
  /// the store is sealed already, OutOfMemoryError, and whatever an Initializer throws; the store is then left
  /// unsealed.
  void seal(std::uint64_t seed = 0);
  /// Like seal(), but leaves the values uninitialised, for a caller that then loads all of them.
  void seal_uninitialized();
  /// Like seal(), but takes over the flat block of values, which may lie in a mapped file, and sets its padding to
  /// zero: the memory must be writable. Throws Error unless type and shape are those that values() would have.
  void seal_with_values(const Tensor& values);
  bool sealed() const { return static_cast<bool>(values_); }

  /// In order of creation.
  const std::vector<std::unique_ptr<Parameter>>& parameters() const { return parameters_; }
  /// The parameter of this name. Throws Error, naming the most similar parameter, if there is none.
  Parameter& find(std::string_view name) const;
  /// The parameter of this name; null if there is none.
  Parameter* find_or_null(std::string_view name) const;
  std::int64_t numel() const;  ///< elements of all parameters without the padding
  /// Elements of the parameters that are multiplied(): the N of 6N operations per token of a training step, forward and
  /// backward. Chowdhery et al. 2022, arXiv:2204.02311, appendix B.
  std::int64_t multiplied_numel() const;

  /// The flat block of values, one axis, groups in the order of kParamGroups. Call mark_changed() after writing to it.
  /// Throws Error before seal().
  Tensor& values();
  const Tensor& values() const;
  /// The range of values() that holds the parameters of a group, padding included.
  FlatRange range(ParamGroup group) const { return ranges_[static_cast<std::size_t>(group)]; }
  /// The range of values() that holds all parameters with a flat gradient, of the groups `decay` and `no_decay`.
  FlatRange trainable() const { return {0, range(ParamGroup::no_decay).end}; }

  /// The flat gradients of the range trainable(). Fills gradients that were not written since clear_gradients() with
  /// zeros first; then all count as written. Throws Error before seal().
  Tensor& gradients() { return gradients(trainable()); }
  /// The same, but does so only for parameters with elements in `range`: others may be undefined.
  Tensor& gradients(FlatRange range);
  /// Marks all gradients as unwritten, so that the next backward pass overwrites them; touches no gradient memory. The
  /// gradients of ParamGroup::rows are dropped; gradients(), take_gradients() and set_gradients() leave them alone.
  /// `index` is that of the next backward pass among those whose gradients are summed (RowGradients::begin()).
  void clear_gradients(std::int64_t index = 0) noexcept;
  /// Returns gradients() and continues with another buffer in which nothing is written. Throws as gradients() does, and
  /// OutOfMemoryError.
  Tensor take_gradients();
  /// Replaces the flat gradients, all of which count as written. The store keeps the given block, without copying it,
  /// and sets its padding to zero. Throws Error unless type and shape are those of gradients().
  void set_gradients(const Tensor& gradients);

  /// Must be called by whatever changes values: an optimizer's step, the loading of a checkpoint, a test. A tape
  /// refuses to run backward through a parameter that has changed since it was recorded.
  void mark_changed() { ++version_; }
  /// The number of changes to values so far, plus 1; one counter for the whole store.
  std::uint64_t version() const { return version_; }

  /// From the next step of an optimizer on, keeps a copy of the values of ParamGroup::decay, rounded to bfloat16, from
  /// which recorded products that round their operands (ProductPrecision) read weights: half as many bytes. No bit of a
  /// result depends on it. Throws Error before seal() and unless the type is float32, OutOfMemoryError.
  void keep_rounded_values();
  /// Whether that makes a step faster: where products use instructions for bfloat16 (kernels/gemm/bf16.h). On two cores
  /// with AMX, a step of `maki bench --workload gpt2` takes 258 ms with it and 277 without, of `quickstart` 7.2 and 7.5
  /// ms. With AVX2 alone the quick start is as fast without.
  static bool rounded_values_pay();
  /// The bytes of such a copy, known from assign_offsets() on.
  std::int64_t rounded_values_bytes() const;
  /// The rounded copy, laid out like range(ParamGroup::decay) of values(); null if there is none that agrees with them.
  const BFloat16* rounded_values() const { return rounded_version_ == version_ ? rounded_memory() : nullptr; }
  /// Its memory, for an optimizer that rounds what it changes, and then calls mark_rounded(); null if none is kept.
  BFloat16* rounded_memory() const;
  /// Says that the rounded copy, if one is kept, agrees with the values until the next mark_changed().
  void mark_rounded() { rounded_version_ = version_; }

  /// Keeps a copy, rounded to 8 bits (core/int8_matrix.h), of the matrices by which every token is multiplied
  /// (Parameter::multiplied()). Until mark_changed(), linear(), linear_gelu(), gelu_feed_forward() and
  /// linear_cross_entropy() read it where they are not recorded, a quarter of the bytes, and compute what they would
  /// with the rounded numbers. Its memory is kept until the next call. Throws Error before seal(), unless the
  /// type is float32 and all these numbers are finite; OutOfMemoryError.
  void keep_int8_values();
  /// The bytes of such a copy.
  std::int64_t int8_values_bytes() const;
  /// Whether there is one that agrees with the values.
  bool has_int8_values() const { return int8_version_ == version_; }

 private:
  void require_sealed() const;
  void draw(Parameter& parameter, std::uint64_t seed);
  void seal_with(const Tensor& values, const std::function<void(Parameter&)>& draw);
  void take_memory(const Tensor& values);
  void bind_gradients(Tensor flat);

  DType dtype_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::unordered_map<std::string, Parameter*> by_name_;
  std::array<FlatRange, kParamGroups.size()> ranges_{};
  Tensor values_, gradients_;
  std::uint64_t version_ = 1;
  Storage rounded_;
  std::uint64_t rounded_version_ = 0;  // of the values that rounded_ agrees with
  Storage int8_;
  std::uint64_t int8_version_ = 0;  // of the values that int8_ agrees with
};

}  // namespace maki
