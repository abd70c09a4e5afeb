#include "autograd/kernels/column_sum.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/column_sum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/round-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows in a block: each block is summed separately before its sum is added to the total. This keeps the rounding error
// of float32 near that of 256 + rows / 256 additions instead of `rows`: 512 for the 65,536 rows of a large step, for
// which this size is best, because 256² = 65,536.
constexpr std::int64_t kBlockRows = 256;

// How a vector of a row is loaded: as it is, or rounded to bfloat16.
struct LoadAsIs {
  template <class T>
  static HWY_INLINE auto load(const WholeVector<T>& at, const T* x) {
    return at.Load(x);
  }
  template <class T>
  static HWY_INLINE auto load(const LastVector<T>& at, const T* x) {
    return at.Load(x);
  }
};
struct LoadRounded {
  template <class X>
  static HWY_INLINE RoundedVec load(const WholeVector<float>& at, const X* x) {
    return rounded_load(x, static_cast<std::int64_t>(hn::Lanes(at.d)));
  }
  template <class X>
  static HWY_INLINE RoundedVec load(const LastVector<float>& at, const X* x) {
    return rounded_load(x, at.count);
  }
};

// The sums of one vector of columns.
template <class How, class Vector, class X>
HWY_INLINE typename Vector::V sum_vector(const Vector& at, std::int64_t rows, const X* x, std::int64_t stride) {
  auto total = hn::Zero(at.d);
  for (std::int64_t begin = 0; begin < rows; begin += kBlockRows) {
    const std::int64_t end = std::min(rows, begin + kBlockRows);
    auto block = hn::Zero(at.d);
    for (std::int64_t i = begin; i < end; ++i) block = hn::Add(block, How::load(at, x + i * stride));
    total = hn::Add(total, block);
  }
  return total;
}

// Sums four adjacent vectors of columns, because a single one would wait for the latency of its own additions. The
// order of the sums of each column is that of sum_vector().
template <class How, class X, class T>
HWY_INLINE void sum_four(std::int64_t rows, const X* x, std::int64_t stride, Sink<T> sums) {
  const WholeVector<T> at;
  const auto d = at.d;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  auto t0 = hn::Zero(d), t1 = t0, t2 = t0, t3 = t0;
  for (std::int64_t begin = 0; begin < rows; begin += kBlockRows) {
    const std::int64_t end = std::min(rows, begin + kBlockRows);
    auto b0 = hn::Zero(d), b1 = b0, b2 = b0, b3 = b0;
    for (std::int64_t i = begin; i < end; ++i) {
      const X* const row = x + i * stride;
      b0 = hn::Add(b0, How::load(at, row));
      b1 = hn::Add(b1, How::load(at, row + width));
      b2 = hn::Add(b2, How::load(at, row + 2 * width));
      b3 = hn::Add(b3, How::load(at, row + 3 * width));
    }
    t0 = hn::Add(t0, b0);
    t1 = hn::Add(t1, b1);
    t2 = hn::Add(t2, b2);
    t3 = hn::Add(t3, b3);
  }
  const auto deliver = [&](auto total, std::int64_t j) HWY_ATTR {
    if (sums.add) total = hn::Add(total, hn::LoadU(d, sums.data + j));
    hn::StoreU(total, d, sums.data + j);
  };
  deliver(t0, 0);
  deliver(t1, width);
  deliver(t2, 2 * width);
  deliver(t3, 3 * width);
}

// sums[j] (+)= Σ_i x[i, j] for the columns [begin, end).
template <class How, class X, class T>
void sum_columns_of(std::int64_t rows, std::int64_t begin, std::int64_t end, const X* x, std::int64_t stride,
                    Sink<T> sums) {
  const hn::ScalableTag<T> d;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = begin;
  for (; j + 4 * width <= end; j += 4 * width) sum_four<How>(rows, x + j, stride, Sink<T>{sums.data + j, sums.add});
  for_each_vector<T>(end - j, [=](const auto& at, std::int64_t i) HWY_ATTR {
    put_vector(at, sums, j + i, sum_vector<How>(at, rows, x + j + i, stride));
  });
}

template <class T>
void sum_columns(std::int64_t rows, std::int64_t begin, std::int64_t end, const T* x, std::int64_t stride,
                 Sink<T> sums) {
  sum_columns_of<LoadAsIs>(rows, begin, end, x, stride, sums);
}
MAKI_KERNEL(sum_columns);

void sum_rounded(std::int64_t rows, std::int64_t begin, std::int64_t end, const float* x, std::int64_t stride,
                 Sink<float> sums) {
  sum_columns_of<LoadRounded>(rows, begin, end, x, stride, sums);
}
void sum_bfloat16(std::int64_t rows, std::int64_t begin, std::int64_t end, const BFloat16* x, std::int64_t stride,
                  Sink<float> sums) {
  sum_columns_of<LoadRounded>(rows, begin, end, x, stride, sums);
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(sum_columns);
MAKI_TARGETS(sum_rounded);
MAKI_TARGETS(sum_bfloat16);

namespace {

template <class Kernel, class X, class T>
void sum_in_tasks(Kernel kernel, std::int64_t rows, std::int64_t cols, const X* x, std::int64_t stride, Sink<T> sums) {
  constexpr std::int64_t kTaskColumns = 64;  // the four vectors of sum_four() with AVX-512; whole cache lines
  parallel_for(ceil_div(cols, kTaskColumns), rows * kTaskColumns, [&](std::int64_t block) {
    const std::int64_t begin = block * kTaskColumns, end = std::min(cols, begin + kTaskColumns);
    kernel(rows, begin, end, x, stride, sums);
  });
}

}  // namespace

template <class T>
void column_sum(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t stride, Sink<T> sums) {
  sum_in_tasks(MAKI_DISPATCH(sum_columns, T), rows, cols, x, stride, sums);
}
void rounded_column_sum(std::int64_t rows, std::int64_t cols, const float* x, std::int64_t stride, Sink<float> sums) {
  require_target();
  sum_in_tasks([](auto... task) { MAKI_ON_TARGET(sum_rounded)(task...); }, rows, cols, x, stride, sums);
}
void rounded_column_sum(std::int64_t rows, std::int64_t cols, const BFloat16* x, std::int64_t stride,
                        Sink<float> sums) {
  require_target();
  sum_in_tasks([](auto... task) { MAKI_ON_TARGET(sum_bfloat16)(task...); }, rows, cols, x, stride, sums);
}
template void column_sum(std::int64_t, std::int64_t, const float*, std::int64_t, Sink<float>);
template void column_sum(std::int64_t, std::int64_t, const double*, std::int64_t, Sink<double>);

}  // namespace maki::kernels
#endif
