// The parts of a scan (scan.h) for one SIMD target: packing of rows, one chunk, the state.
#if defined(MAKI_KERNELS_SCAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_SCAN_INL_H_
#undef MAKI_KERNELS_SCAN_INL_H_
#else
#define MAKI_KERNELS_SCAN_INL_H_
#endif

#include <hwy/highway.h>

#include "autograd/kernels/attention/block_math-inl.h"
#include "autograd/kernels/linear_attention/scan.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The scratch of one worker (ScanSize::scratch()), and the rows of the chunk that it holds.
template <class T>
struct ScanChunk {
  T *a, *b, *bt, *c, *weights, *o, *base, *part, *sum;
  std::int64_t rows = 0;
  bool c_finite = true;

  ScanChunk(const ScanSize& size, T* at)
      : a(at),
        b(a + size.buffer * size.depth),
        bt(b + size.buffer * size.depth),
        c(bt + size.buffer * size.depth),
        weights(c + size.buffer * size.width),
        o(weights + kPaddingMultiple * size.buffer),
        base(o + kPaddingMultiple * size.width),
        part(base + size.state()),
        sum(part + size.state()) {}
};

constexpr std::int64_t whole_vectors(std::int64_t n, std::int64_t lanes) { return (n + lanes - 1) / lanes * lanes; }

/// to [rows, ld] = rows [begin, begin + rows) of an operand, with zeros in the columns beyond its width. Returns
/// whether all of it is finite, except the tails, which are not examined.
template <class T>
HWY_NOINLINE bool pack_scan_rows(const ScanRows<T>& from, std::int64_t begin, std::int64_t rows, T* HWY_RESTRICT to,
                                 std::int64_t ld) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  auto bad = hn::Zero(d);  // x − x is 0 for finite x and NaN otherwise
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const row = from.data + (begin + r) * from.stride;
    T* const out = to + r * ld;
    const T scale = from.scale.data == nullptr ? T{1} : from.scale.data[(begin + r) * from.scale.step];
    const auto factor = hn::Set(d, scale);
    for (std::int64_t col = 0; col < from.cols; col += kLanes) {
      const auto x = hn::Mul(LoadPartial(d, row + col, from.cols - col), factor);
      bad = hn::Or(bad, hn::Sub(x, x));
      hn::StoreU(x, d, out + col);
    }
    std::fill(out + from.cols, out + ld, T{0});
    if (from.tail.data != nullptr) out[from.cols] = from.tail.data[(begin + r) * from.tail.step];
  }
  return hn::AllTrue(d, hn::Eq(bad, hn::Zero(d)));
}

/// to [n] = x + y, or to += x if y is null.
template <class T>
HWY_INLINE void add_states(std::int64_t n, const T* x, const T* y, T* to) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < n; i += max_lanes<T>()) {
    hn::StoreU(hn::Add(hn::LoadU(d, (y == nullptr ? to : y) + i), hn::LoadU(d, x + i)), d, to + i);
  }
}

/// state += Σ b cᵀ over the chunk, and z += Σ b.
template <class T>
HWY_NOINLINE void add_chunk(const ScanSize& size, std::int64_t depth, const ScanChunk<T>& chunk, T* state) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kLanes = max_lanes<T>();
  for (std::int64_t i = 0; i < depth; i += kAttentionTileRows) {
    product<kAttentionTileRows, true, Store::add>(size.width, chunk.rows, chunk.b + i, size.depth, chunk.c, size.width,
                                                  state + i * size.width, size.width);
  }
  T* const z = state + size.depth * size.width;
  for (std::int64_t i = 0; i < size.depth; i += kLanes) {
    auto sum = hn::LoadU(d, z + i);
    for (std::int64_t r = 0; r < chunk.rows; ++r) sum = hn::Add(sum, hn::LoadU(d, chunk.b + r * size.depth + i));
    hn::StoreU(sum, d, z + i);
  }
}

/// The weights a_i·b_j of a group of rows of the chunk, from `row` on, for its rows j < seen, with zeros for j > i.
template <class T>
HWY_INLINE void causal_weights(const ScanSize& size, std::int64_t depth, const ScanChunk<T>& chunk, std::int64_t row,
                               std::int64_t seen) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  for (std::int64_t j = 0; j < seen; j += kKeyBlock) {
    product<kAttentionTileRows, false, Store::set>(whole_vectors(std::min(kKeyBlock, seen - j), kLanes), depth,
                                                   chunk.a + row * size.depth, size.depth, chunk.bt + j * size.depth,
                                                   kKeyBlock, chunk.weights + j, size.buffer);
  }
  for (std::int64_t r = 0; r < kAttentionTileRows; ++r) {
    T* const w = chunk.weights + r * size.buffer;
    std::fill(w + std::min(row + r + 1, seen), w + whole_vectors(seen, kLanes), T{0});
  }
}

/// Σ_j w_j over n weights, plus a·z.
template <class T>
HWY_INLINE T denominator(const ScanSize& size, const T* w, std::int64_t n, const T* a, const T* z) {
  const T inside = sum_in_lanes<T>(0, n, [=](const auto& at, std::int64_t j, auto sum) HWY_ATTR {
                     return hn::Add(sum, at.Load(w + j));
                   }).total();
  if (z == nullptr) return inside;
  return inside + sum_in_lanes<T>(0, size.depth, [=](const auto& at, std::int64_t i, auto sum) HWY_ATTR {
                    return hn::MulAdd(at.Load(a + i), at.Load(z + i), sum);
                  }).total();
}

/// Delivers a group of rows of out, from row at + row of the scan on, whose sums are in chunk.o. `at` is the first row
/// of the chunk.
template <class T>
HWY_INLINE void deliver_group(const LinearScan<T>& scan, const ScanSize& size, const ScanChunk<T>& chunk,
                              std::int64_t row, std::int64_t at, std::int64_t seen, const T* z) {
  const std::int64_t rows = std::min<std::int64_t>(kAttentionTileRows, chunk.rows - row);
  for (std::int64_t r = 0; r < rows; ++r) {
    T factor{1};
    if (scan.inverse != nullptr) {
      const T sum = denominator(size, chunk.weights + r * size.buffer, seen, chunk.a + (row + r) * size.depth, z);
      const bool floored = scan.floor > 0 && scan.floor > sum;  // false for NaN
      factor = scan.keys == 0 ? T{0} : T{1} / (floored ? scan.floor : sum);
      scan.inverse[at + row + r] = factor;
    }
    T* const out = scan.out + (at + row + r) * scan.out_stride;
    if (scan.add) {
      deliver_row<Delivery::add>(chunk.o + r * size.width, scan.c.cols, factor, out);
    } else {
      deliver_row<Delivery::store>(chunk.o + r * size.width, scan.c.cols, factor, out);
    }
  }
}

/// Computes the rows of `out` that belong to the chunk, which begins at row `at` of the scan. `state` is the sum over
/// the rows before it, or over all rows if the scan is not causal; null if there are none.
template <class T>
HWY_NOINLINE void run_chunk(const LinearScan<T>& scan, const ScanSize& size, const ScanChunk<T>& chunk, std::int64_t at,
                            const T* state) {
  constexpr std::int64_t kLanes = max_lanes<T>();
  const std::int64_t depth = scan.a.width(), columns = whole_vectors(scan.c.cols, kLanes);
  for (std::int64_t row = 0; row < chunk.rows; row += kAttentionTileRows) {
    const std::int64_t seen = scan.causal ? std::min<std::int64_t>(row + kAttentionTileRows, chunk.rows) : 0;
    causal_weights(size, depth, chunk, row, seen);
    if (chunk.c_finite) {
      product<kAttentionTileRows, false, Store::set>(columns, seen, chunk.weights, size.buffer, chunk.c, size.width,
                                                     chunk.o, size.width);
    } else {  // row by row: the others may see a row of c that is not finite
      for (std::int64_t r = 0; r < kAttentionTileRows; ++r) {
        product<1, false, Store::set>(columns, std::min(row + r + 1, seen), chunk.weights + r * size.buffer,
                                      size.buffer, chunk.c, size.width, chunk.o + r * size.width, size.width);
      }
    }
    const T* const z = state == nullptr ? nullptr : state + size.depth * size.width;
    if (state != nullptr) {
      product<kAttentionTileRows, false, Store::add>(columns, depth, chunk.a + row * size.depth, size.depth, state,
                                                     size.width, chunk.o, size.width);
    }
    deliver_group(scan, size, chunk, row, at, seen, z);
  }
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_SCAN_INL_H_
