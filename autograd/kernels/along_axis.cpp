#include "autograd/kernels/along_axis.h"

#include <algorithm>
#include <cmath>

#include "autograd/core/parallel.h"

namespace maki::kernels {
namespace {

// Lines along the axis are processed in strips of this many adjacent lines, so that memory is read in order if `inner`
// is large, and the running values of the strip stay in the level-1 cache.
constexpr std::int64_t kStripLines = 64;

// Calls body(o, left, width) for every strip; `work` is the number of elements that it visits in each line.
template <class Body>
void for_each_strip(const AlongAxis& shape, std::int64_t work, const Body& body) {
  const std::int64_t strips = ceil_div(shape.inner, kStripLines);
  parallel_ranges(shape.outer * strips, work * std::min(shape.inner, kStripLines),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t strip = begin; strip < end; ++strip) {
                      const std::int64_t left = strip % strips * kStripLines;
                      body(strip / strips, left, std::min(kStripLines, shape.inner - left));
                    }
                  });
}

}  // namespace

template <class T>
void argmax(const AlongAxis& shape, const T* x, std::int32_t* places) {
  for_each_strip(shape, shape.extent, [&](std::int64_t o, std::int64_t left, std::int64_t width) {
    const T* row = x + o * shape.extent * shape.inner + left;
    std::int32_t* const place = places + o * shape.inner + left;
    T largest[kStripLines];
    std::copy(row, row + width, largest);
    std::fill(place, place + width, 0);
    for (std::int64_t k = 1; k < shape.extent; ++k) {
      row += shape.inner;
      for (std::int64_t i = 0; i < width; ++i) {
        if (row[i] <= largest[i] || std::isnan(largest[i])) continue;  // not skipped: row[i] is larger or the first NaN
        largest[i] = row[i];
        place[i] = static_cast<std::int32_t>(k);
      }
    }
  });
}
template void argmax(const AlongAxis&, const float*, std::int32_t*);
template void argmax(const AlongAxis&, const double*, std::int32_t*);

template <class T>
void gather_forward(const AlongAxis& shape, std::int64_t count, const T* x, const std::int32_t* ids, T* y) {
  for_each_strip(shape, count, [&](std::int64_t o, std::int64_t left, std::int64_t width) {
    const T* const from = x + o * shape.extent * shape.inner + left;
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t at = (o * count + j) * shape.inner + left;
      for (std::int64_t i = 0; i < width; ++i) y[at + i] = from[ids[at + i] * shape.inner + i];
    }
  });
}
template void gather_forward(const AlongAxis&, std::int64_t, const float*, const std::int32_t*, float*);
template void gather_forward(const AlongAxis&, std::int64_t, const double*, const std::int32_t*, double*);

template <class T>
void gather_backward(const AlongAxis& shape, std::int64_t count, const std::int32_t* ids, const T* dy, Sink<T> dx) {
  for_each_strip(shape, shape.extent + count, [&](std::int64_t o, std::int64_t left, std::int64_t width) {
    T* const to = dx.data + o * shape.extent * shape.inner + left;
    for (std::int64_t k = 0; k < shape.extent && !dx.add; ++k) std::fill_n(to + k * shape.inner, width, T{0});
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t at = (o * count + j) * shape.inner + left;
      for (std::int64_t i = 0; i < width; ++i) to[ids[at + i] * shape.inner + i] += dy[at + i];
    }
  });
}
template void gather_backward(const AlongAxis&, std::int64_t, const std::int32_t*, const float*, Sink<float>);
template void gather_backward(const AlongAxis&, std::int64_t, const std::int32_t*, const double*, Sink<double>);

}  // namespace maki::kernels
