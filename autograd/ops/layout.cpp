// Transposition, concatenation and slicing: copies, whose backward copies the gradient back.
#include "autograd/kernels/layout.h"

#include <array>
#include <utility>

#include "autograd/ops.h"
#include "autograd/ops/common.h"
#include "autograd/tape.h"

namespace maki {
namespace {

// The product of extents [begin, end).
std::int64_t product(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int axis = begin; axis < end; ++axis) n *= shape[axis];
  return n;
}

// The number of parts of concat() is limited because its closure keeps their widths in an array of fixed size, so that
// recording allocates nothing.
constexpr std::size_t kMaxParts = 64;

}  // namespace

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  check_floating("transpose", x);
  const Shape& from = x.shape();
  const int first = std::min(from.normalize(axis_a), from.normalize(axis_b));
  const int second = std::max(from.normalize(axis_a), from.normalize(axis_b));
  Tensor y = empty(from.with(first, from[second]).with(second, from[first]), x.dtype());
  kernels::Transposition shape{.outer = product(from, 0, first),
                               .rows = from[first],
                               .middle = product(from, first + 1, second),
                               .cols = from[second],
                               .inner = product(from, second + 1, from.rank())};
  if (first == second) shape = {.inner = from.numel()};
  dispatch(x.dtype(), [&]<class T>() { kernels::transpose(shape, x.data<T>(), Sink<T>{y.data<T>(), false}); });
  return record("transpose", y, {x}, [shape, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      if (const Sink<T> dx = g.in<T>(0)) kernels::transpose(shape.inverse(), g.out<T>(), dx);
    });
  });
}

Tensor concat(std::span<const Tensor> parts, int axis) {
  check(!parts.empty() && parts.size() <= kMaxParts, "concat: takes 1 to {} parts; got {}", kMaxParts, parts.size());
  check_floating("concat", parts[0]);
  const Shape& first = parts[0].shape();
  const int along = first.normalize(axis);
  std::int64_t extent = 0;
  for (const Tensor& part : parts) {
    check_same_type("concat", parts[0], part);
    check(part.shape().rank() == first.rank() && part.shape().with(along, 0) == first.with(along, 0),
          "concat: all extents except that of axis {} must be equal; got {} and {}", along, first, part.shape());
    extent += part.shape()[along];
  }
  Tensor y = empty(first.with(along, extent), parts[0].dtype());
  const std::int64_t rows = product(first, 0, along), inner = product(first, along + 1, first.rank());
  const std::int64_t stride = extent * inner;

  std::array<std::int64_t, kMaxParts> widths{};
  std::array<const Tensor*, kMaxParts> inputs{};
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    inputs[i] = &parts[i];
    widths[i] = parts[i].shape()[along] * inner;
    dispatch(y.dtype(), [&]<class T>() {
      kernels::copy_rows(rows, widths[i], parts[i].data<T>(), widths[i], Sink<T>{y.data<T>() + at, false}, stride);
    });
    at += widths[i];
  }
  Tensor* const outputs[] = {&y};
  record("concat", outputs, std::span<const Tensor* const>(inputs.data(), parts.size()),
         [widths, n = parts.size(), rows, stride, dtype = y.dtype()](Grads& g) {
           dispatch(dtype, [&]<class T>() {
             const T* dy = g.out<T>();
             for (std::size_t i = 0; i < n; dy += widths[i++]) {
               const Sink<T> dx = g.in<T>(static_cast<int>(i));
               if (dx) kernels::copy_rows(rows, widths[i], dy, stride, dx, widths[i]);
             }
           });
         });
  return y;
}
Tensor concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
  check_floating("slice", x);
  const Shape& from = x.shape();
  const int along = from.normalize(axis);
  const std::int64_t extent = from[along];
  check(0 <= begin && begin <= end && end <= extent,
        "slice: must have 0 <= begin <= end <= {}; got [{}, {}) of axis {} of {}", extent, begin, end, along, from);
  Tensor y = empty(from.with(along, end - begin), x.dtype());
  const std::int64_t rows = product(from, 0, along), inner = product(from, along + 1, from.rank());
  const std::int64_t width = (end - begin) * inner, before = begin * inner, stride = extent * inner;
  dispatch(x.dtype(), [&]<class T>() {
    kernels::copy_rows(rows, width, x.data<T>() + before, stride, Sink<T>{y.data<T>(), false}, width);
  });
  return record("slice", y, {x}, [rows, width, before, stride, dtype = x.dtype()](Grads& g) {
    dispatch(dtype, [&]<class T>() {
      const Sink<T> dx = g.in<T>(0);
      if (!dx) return;
      if (!dx.add) {  // elements outside the slice have gradient 0
        kernels::zero_rows(rows, before, dx.data, stride);
        kernels::zero_rows(rows, stride - before - width, dx.data + before + width, stride);
      }
      kernels::copy_rows(rows, width, g.out<T>(), width, Sink<T>{dx.data + before, dx.add}, stride);
    });
  });
}

}  // namespace maki
