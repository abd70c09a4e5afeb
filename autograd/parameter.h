// Parameters and their store. A parameter can only be born with a name, in a store. The store owns values, gradients
// and names; seal() lays all of them out in one flat block, in birth order within each group, 64-byte aligned with zero
// padding, so that the optimizer, the norm and the checkpoint are loops over flat memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/core/philox.h"
#include "autograd/tensor.h"

namespace maki {

/// Initial value of element `index`, drawn from the parameter's own stream: a function of (seed, name, index) alone.
using Init = std::function<double(const RandomStream& stream, std::uint64_t index)>;
namespace init {
Init constant(double value);
Init normal(double std);
Init uniform(double bound);  ///< [-bound, bound)
Init values(const Tensor& source);
}  // namespace init

/// Weight decay acts on `decay`; `frozen` has no gradient and no moments.
enum class Group : std::uint8_t { decay, no_decay, frozen };
inline constexpr std::array kGroups = {Group::decay, Group::no_decay, Group::frozen};
constexpr const char* to_string(Group group) {
  return group == Group::decay ? "decay" : group == Group::no_decay ? "no_decay" : "frozen";
}

class ParameterStore;

class Parameter {
 public:
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  Group group() const { return group_; }
  bool trainable() const { return group_ != Group::frozen; }
  /// First element in the store's flat block.
  std::int64_t offset() const { return offset_; }

  /// The value, linked so that ops send its gradient here. Throws before seal().
  const Tensor& value() const;
  operator const Tensor&() const { return value(); }  // NOLINT: a parameter is used as the tensor it holds

  /// The gradient of the last backward pass; zeros where nothing was written. Throws for a frozen parameter.
  Tensor gradient() const;
  /// Counts every change of the store's values: what is derived from a value (a packed copy) is keyed by it.
  std::uint64_t version() const;

  /// For the tape: the gradient's memory, and whether this step wrote to it already.
  Tensor& gradient_buffer() const { return gradient_; }
  bool& gradient_written() const { return written_; }
  /// For the tape: after a backward pass that failed, no gradient of the store is to be believed.
  void clear_store_gradients() const noexcept;

 private:
  friend class ParameterStore;
  Parameter(ParameterStore& store, std::string name, const Shape& shape, Group group, Init init);

  ParameterStore& store_;
  std::string name_;
  Shape shape_;
  Group group_;
  Init init_;
  std::int64_t offset_ = 0;
  Tensor value_;
  mutable Tensor gradient_;
  mutable bool written_ = false;
};

/// A range of elements in the flat block.
struct FlatRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

class ParameterStore {
 public:
  explicit ParameterStore(DType dtype = DType::float32);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  DType dtype() const { return dtype_; }

  /// A new parameter; the reference stays valid as long as the store. Without a group, tensors of two dimensions and
  /// more decay. Throws when the name is empty or taken, or the store is sealed.
  Parameter& add(const std::string& name, const Shape& shape, Init init, std::optional<Group> group = std::nullopt);
  /// Gives every parameter its place and every group its range; takes no memory. seal() does it too. Throws when all
  /// parameters together have too many elements.
  void lay_out();
  /// Lays out and draws everything. Once. When it throws (no memory, an initial value that cannot be drawn), the store
  /// is not sealed.
  void seal(std::uint64_t seed = 0);
  /// Lays out and draws nothing, for a load that writes all values: until then they are anything.
  void seal_undrawn();
  bool sealed() const { return static_cast<bool>(values_); }

  /// In birth order.
  const std::vector<std::unique_ptr<Parameter>>& parameters() const { return parameters_; }
  /// Throws, naming the nearest, when there is none.
  Parameter& find(std::string_view name) const;
  std::int64_t numel() const;  ///< elements of all parameters, padding not counted

  /// The flat block of values: groups in the order of kGroups.
  Tensor& values();
  FlatRange range(Group group) const { return ranges_[static_cast<std::size_t>(group)]; }
  FlatRange trainable() const { return {0, range(Group::no_decay).end}; }

  /// The flat gradients of range trainable(), finished: what nobody wrote since clear_gradients() is zero.
  Tensor& gradients();
  /// Nothing is written from here on; costs nothing.
  void clear_gradients() noexcept;
  /// Hands the finished gradients over and continues with another buffer, nothing written.
  Tensor take_gradients();
  /// Puts a flat gradient in the place of the store's own, as if it had just been written.
  void set_gradients(const Tensor& gradients);

  /// Raised by whoever changes values: an optimizer's step, a load, a test. One counter for the whole store.
  void touch() { ++version_; }
  std::uint64_t version() const { return version_; }

 private:
  void require_sealed() const;
  void draw(Parameter& parameter, std::uint64_t seed);
  void seal_with(const std::function<void(Parameter&)>& draw);
  void take_memory();
  void bind_gradients(Tensor flat);

  DType dtype_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::unordered_map<std::string, Parameter*> by_name_;
  std::array<FlatRange, 3> ranges_{};
  Tensor values_, gradients_;
  std::uint64_t version_ = 1;
};

}  // namespace maki
