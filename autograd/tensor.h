// Tensor: a value handle over a refcounted block, dense and row-major. Copying one copies the handle; nothing in the
// engine writes to a tensor after the op that made it (there are no in-place ops and no strided views). The handle also
// carries where its gradient goes: to a parameter, to a slot of a tape, or nowhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/core/dtype.h"
#include "autograd/core/shape.h"
#include "autograd/core/storage.h"

namespace maki {

class Parameter;

/// Where a gradient goes. A number in the handle, not in the block: handles of one block may differ (reshape, detach).
struct GradientLink {
  const Parameter* parameter = nullptr;
  std::uint64_t epoch = 0;  ///< which recording of which tape the slot belongs to
  std::int32_t slot = -1;
};

class Tensor {
 public:
  Tensor() = default;  ///< no tensor at all: `if (tensor)` is false
  /// A part of a block: `offset` bytes in. The caller vouches that the block is large enough.
  Tensor(Storage storage, std::int64_t offset, const Shape& shape, DType dtype);

  explicit operator bool() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t numel() const { return shape_.numel(); }

  /// The elements. T must be the tensor's type. Writing is for whoever made the tensor, before anybody else sees it.
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
  /// Element i as a double, whatever the type. Not for loops.
  double at(std::int64_t i) const;
  /// The only element. Throws unless numel() is 1.
  double item() const;

  /// Elements [begin, begin + shape.numel()) of the flat block as a tensor of their own, without a gradient.
  Tensor slice_flat(std::int64_t begin, const Shape& shape) const;

  /// The same block without a gradient.
  Tensor detach() const;
  /// Will a recorded op on this handle send a gradient anywhere?
  bool requires_grad() const { return link_.parameter != nullptr || link_.slot >= 0; }
  bool shared() const { return storage_.shared(); }  ///< another handle holds the block too
  const GradientLink& link() const { return link_; }
  void set_link(const GradientLink& link) { link_ = link; }

  /// The same elements in another shape; free, and the gradient goes where it went. At most one extent may be -1: it is
  /// computed. Throws unless the number of elements stays.
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

/// Uninitialised: every element is to be written by whoever asked.
Tensor empty(const Shape& shape, DType dtype);
Tensor empty_like(const Tensor& x);
Tensor zeros(const Shape& shape, DType dtype);
Tensor full(const Shape& shape, DType dtype, double value);
/// Copies the values; throws unless there are as many as the shape holds.
template <class T>
Tensor tensor(std::span<const T> values, const Shape& shape);
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape) {
  return tensor(std::span<const T>(values), shape);
}

}  // namespace maki
