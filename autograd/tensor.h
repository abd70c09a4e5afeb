// Tensor: a handle to dense, row-major elements in a reference-counted block. Copying a Tensor copies the handle, not
// the elements. No op writes to a tensor that another op has made: there are no strided views and no in-place ops,
// except that linear_attention() adds to the sums it is given. The handle also says where the tensor's gradient goes:
// to a parameter, to a slot of a tape, or nowhere.
//
// Thread safety: handles of one block may be read, copied and destroyed on several threads at once. A single handle,
// like any other object, must not be assigned on one thread while another uses it, and elements must not be written on
// one thread while another reads them.
//
// Lifetime: a block lives as long as its last handle, so a tensor never refers to freed memory. A gradient link is
// different: it does not keep its parameter or tape alive. A tensor that links to a parameter must not be given to an
// op after the parameter's store is destroyed; one that links to a tape is rejected in a Recording once backward() or
// clear() has emptied the tape. Both can be used again through detach().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/core/dtype.h"
#include "autograd/core/shape.h"
#include "autograd/core/storage.h"

namespace maki {

class Parameter;

/// Where a gradient goes: to a parameter, to a tape slot, or (by default) nowhere. It belongs to the handle and not to
/// the block, because handles of one block may differ in it (detach).
struct GradientLink {
  const Parameter* value_of = nullptr;  ///< the parameter that the elements are
  std::uint64_t epoch = 0;  ///< identifies the tape, and its contents between two calls of backward() or clear()
  std::int32_t slot = -1;
  bool frozen = false;  ///< whether the parameter takes no gradient

  /// The parameter that the gradient goes to, or null.
  const Parameter* parameter() const { return frozen ? nullptr : value_of; }
};

class Tensor {
 public:
  /// An empty handle, for which `if (tensor)` is false. It has no elements, although shape() is [], numel() 1 and
  /// dtype() float32; access to elements throws Error.
  Tensor() = default;
  /// The elements that begin `offset` bytes into a block. Requires: the storage is not empty, and the block is large
  /// enough for them.
  Tensor(Storage storage, std::int64_t offset, const Shape& shape, DType dtype);

  explicit operator bool() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t numel() const { return shape_.numel(); }

  /// The elements in row-major order, valid as long as any handle holds the block. Throws Error unless T is the
  /// tensor's type, and for an empty handle. Elements may be written only by the code that created the tensor, before
  /// other handles or ops use it; values of parameters may be changed later (ParameterStore::mark_changed()).
  template <class T>
  const T* data() const {
    require_dtype(dtype_of<T>());
    return reinterpret_cast<const T*>(data_);
  }
  template <class T>
  T* data() {
    require_dtype(dtype_of<T>());
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  template <class T>
  std::span<T> values() {
    return {data<T>(), static_cast<std::size_t>(numel())};
  }
  /// Element i in row-major order, converted to double from any type. Throws Error if i is out of range. Slow; loops
  /// should use values().
  double at(std::int64_t i) const;
  /// The only element. Throws Error unless numel() is 1.
  double item() const;

  /// Elements [begin, begin + shape.numel()) as a tensor that shares the block and has no gradient link. Throws Error
  /// if they are out of range.
  Tensor slice_flat(std::int64_t begin, const Shape& shape) const;

  /// A handle to the same elements without a gradient link: gradients do not flow through it.
  Tensor detach() const;
  /// A new tensor with a copy of the elements and without a gradient link; of an empty handle, an empty handle. Throws
  /// OutOfMemoryError if the system refuses the memory.
  Tensor clone() const;
  /// Whether a recorded op with this tensor as input will send a gradient to it.
  bool requires_grad() const { return link_.parameter() != nullptr || link_.slot >= 0; }
  /// Whether another handle refers to the block as well. Requires: the handle is not empty.
  bool shared() const { return storage_.shared(); }
  /// For the tape and the parameter store.
  const GradientLink& link() const { return link_; }
  void set_link(const GradientLink& link) { link_ = link; }

  /// A handle to the same elements in another shape, with the same gradient link; no elements are copied. At most one
  /// extent may be -1 and is then inferred, unless another one is 0. Throws Error unless the number of elements stays
  /// the same.
  friend Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
  friend Tensor reshape(const Tensor& x, const Shape& shape);

 private:
  void require_dtype(DType dtype) const;

  Storage storage_;
  std::byte* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::float32;
  GradientLink link_;
};

/// A new tensor with uninitialised elements. All functions below that create tensors throw OutOfMemoryError if the
/// system refuses the memory.
Tensor empty(const Shape& shape, DType dtype);
Tensor empty_like(const Tensor& x);  ///< uninitialised, with the shape and type of x
Tensor zeros(const Shape& shape, DType dtype);
/// Every element is `value`, converted to the type: for int32, truncated toward zero. Requires: int32 can hold it.
Tensor full(const Shape& shape, DType dtype, double value);
/// A tensor of float, double or std::int32_t with a copy of the values, given in row-major order. Throws Error unless
/// there are as many values as the shape has elements.
template <class T>
Tensor tensor(std::span<const T> values, const Shape& shape);
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape) {
  return tensor(std::span<const T>(values), shape);
}

}  // namespace maki
