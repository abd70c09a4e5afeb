#include "autograd/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "autograd/core/check.h"

namespace maki {

Tensor::Tensor(Storage storage, std::int64_t offset, const Shape& shape, DType dtype)
    : storage_(std::move(storage)), data_(storage_.data() + offset), shape_(shape), dtype_(dtype) {}

void Tensor::require_dtype(DType dtype) const {
  check(dtype == dtype_ && storage_, "tensor: elements must be accessed by their type, {}; got {}",
        storage_ ? to_string(dtype_) : "none (the tensor is empty)", to_string(dtype));
}

double Tensor::at(std::int64_t i) const {
  check(i >= 0 && i < numel(), "tensor: the index must be in [0, {}); got {}", numel(), i);
  if (dtype_ == DType::int32) return data<std::int32_t>()[i];
  return dispatch(dtype_, [&]<class T>() { return static_cast<double>(data<T>()[i]); });
}

double Tensor::item() const {
  check(numel() == 1, "item: the tensor must have exactly one element; got shape {}", shape_);
  return at(0);
}

Tensor Tensor::slice_flat(std::int64_t begin, const Shape& shape) const {
  check(begin >= 0 && begin <= numel() && shape.numel() <= numel() - begin,
        "slice_flat: {} elements from {} on must lie in [0, {})", shape.numel(), begin, numel());
  Tensor part = detach();
  part.data_ += begin * size_of(dtype_);
  part.shape_ = shape;
  return part;
}

Tensor Tensor::detach() const {
  Tensor copy = *this;
  copy.link_ = {};
  return copy;
}

Tensor Tensor::clone() const {
  if (!storage_) return {};
  Tensor copy = empty(shape_, dtype_);
  std::memcpy(copy.data_, data_, static_cast<std::size_t>(numel() * size_of(dtype_)));
  return copy;
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  check(shape.numel() == x.numel(), "reshape: the number of elements must stay the same; got {} to {}", x.shape(),
        shape);
  Tensor y = x;
  y.shape_ = shape;
  return y;
}

Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents) {
  const auto unknown = std::count(extents.begin(), extents.end(), -1);
  if (unknown == 0) return reshape(x, Shape(extents));
  check(unknown == 1, "reshape: at most one extent may be -1; got {} of them", unknown);
  check(extents.size() <= Shape::kMaxRank, "reshape: at most {} dimensions; got {}", Shape::kMaxRank, extents.size());
  std::array<std::int64_t, Shape::kMaxRank> filled{};
  std::copy(extents.begin(), extents.end(), filled.begin());
  const auto hole = std::find(filled.begin(), filled.begin() + static_cast<std::ptrdiff_t>(extents.size()), -1);
  *hole = 1;
  const std::span<const std::int64_t> all(filled.data(), extents.size());
  const std::int64_t others = Shape(all).numel();
  check(others > 0, "reshape: an extent of -1 cannot be inferred next to an extent of 0; specify all extents");
  check(x.numel() % others == 0, "reshape: {} elements are not divisible by {}, the product of the other extents",
        x.numel(), others);
  *hole = x.numel() / others;
  return reshape(x, Shape(all));
}

Tensor empty(const Shape& shape, DType dtype) {
  return Tensor(Storage(shape.numel() * size_of(dtype)), 0, shape, dtype);
}
Tensor empty_like(const Tensor& x) { return empty(x.shape(), x.dtype()); }

Tensor zeros(const Shape& shape, DType dtype) { return full(shape, dtype, 0); }

Tensor full(const Shape& shape, DType dtype, double value) {
  Tensor y = empty(shape, dtype);
  if (dtype == DType::int32) {
    std::ranges::fill(y.values<std::int32_t>(), static_cast<std::int32_t>(value));
  } else {
    dispatch(dtype, [&]<class T>() { std::ranges::fill(y.values<T>(), static_cast<T>(value)); });
  }
  return y;
}

template <class T>
Tensor tensor(std::span<const T> values, const Shape& shape) {
  check(static_cast<std::int64_t>(values.size()) == shape.numel(), "tensor: shape {} has {} elements; got {}", shape,
        shape.numel(), values.size());
  Tensor y = empty(shape, dtype_of<T>());
  std::ranges::copy(values, y.data<T>());
  return y;
}
template Tensor tensor(std::span<const float>, const Shape&);
template Tensor tensor(std::span<const double>, const Shape&);
template Tensor tensor(std::span<const std::int32_t>, const Shape&);

}  // namespace maki
