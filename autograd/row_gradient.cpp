#include "autograd/row_gradient.h"

#include <algorithm>
#include <utility>

namespace maki {
namespace {

// Goes over the rows of one gradient: take() returns the values of `row` if that is the next one, otherwise null.
struct Reader {
  std::span<const std::int32_t> rows;
  std::size_t next = 0;
  template <class T>
  const T* take(std::int32_t row, const Tensor& values) {
    if (next == rows.size() || rows[next] != row) return nullptr;
    return values.data<T>() + static_cast<std::int64_t>(next++) * values.shape()[1];
  }
};

// y = Σ of what is not null, in the order of the arguments.
template <class T>
void add_rows(const T* a, const T* b, std::int64_t cols, T* y) {
  if (a == nullptr || b == nullptr) {
    std::copy_n(a != nullptr ? a : b, cols, y);
    return;
  }
  for (std::int64_t j = 0; j < cols; ++j) y[j] = a[j] + b[j];
}

}  // namespace

RowGradient sum_of_rows(const RowGradient& a, const RowGradient& b) {
  const std::span<const std::int32_t> x = a.rows.values<std::int32_t>(), y = b.rows.values<std::int32_t>();
  Tensor room = empty({a.rows.numel() + b.rows.numel()}, DType::int32);
  std::int32_t* const united = room.data<std::int32_t>();
  const std::int64_t count = std::set_union(x.begin(), x.end(), y.begin(), y.end(), united) - united;
  const std::int64_t cols = a.values.shape()[1];
  Tensor values = empty({count, cols}, a.values.dtype());
  dispatch(values.dtype(), [&]<class T>() {
    Reader left{x}, right{y};
    for (std::int64_t i = 0; i < count; ++i) {
      const T *const from_a = left.take<T>(united[i], a.values), *const from_b = right.take<T>(united[i], b.values);
      add_rows(from_a, from_b, cols, values.data<T>() + i * cols);
    }
  });
  return {room.slice_flat(0, Shape{count}), values};
}

void RowGradients::add(RowGradient gradient, int level) { tree_.push(std::move(gradient), sum_of_rows, level); }

RowGradient RowGradients::sum() const { return tree_.empty() ? RowGradient() : tree_.total(sum_of_rows); }

}  // namespace maki
