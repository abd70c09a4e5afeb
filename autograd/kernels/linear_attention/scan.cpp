// Runs scans (scan.h): one worker per range of rows.
#include "autograd/kernels/linear_attention/scan.h"

#include "autograd/kernels/linear_attention/run_scans.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/linear_attention/scan.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/linear_attention/scan-inl.h"
#include "autograd/kernels/simd/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

/// Packs the rows of b and c from `at` on into the chunk.
template <class T>
HWY_INLINE void pack_keys(const LinearScan<T>& scan, const ScanSize& size, std::int64_t at, ScanChunk<T>& chunk) {
  pack_scan_rows(scan.b, at, chunk.rows, chunk.b, size.depth);
  chunk.c_finite = pack_scan_rows(scan.c, at, chunk.rows, chunk.c, size.width);
}

/// state = Σ b cᵀ and Σ b over rows [begin, end), which are one segment.
template <class T>
void sum_segment_on_target(const LinearScan<T>& scan, std::int64_t begin, std::int64_t end, T* state, T* scratch) {
  const ScanSize size(scan.chunk, scan.a.width(), scan.c.cols);
  ScanChunk<T> chunk(size, scratch);
  std::fill(state, state + size.state(), T{0});
  for (std::int64_t at = begin; at < end; at += scan.chunk) {
    chunk.rows = std::min(scan.chunk, end - at);
    pack_keys(scan, size, at, chunk);
    add_chunk(size, scan.b.width(), chunk, state);
  }
}

/// Rows [begin, end) of a causal scan, where `begin` is a multiple of the segment and `base` the sum of the rows before
/// it, or null. Writes the sum of all rows before `end` to `last`, if that is not null.
template <class T>
void run_causal_on_target(const LinearScan<T>& scan, std::int64_t begin, std::int64_t end, const T* base, T* last,
                          T* scratch) {
  const ScanSize size(scan.chunk, scan.a.width(), scan.c.cols);
  ScanChunk<T> chunk(size, scratch);
  const std::int64_t state = size.state();
  bool before = base != nullptr;
  std::fill(chunk.base, chunk.base + 2 * state, T{0});
  if (before) std::copy(base, base + state, chunk.base);
  for (std::int64_t at = begin; at < end; at += scan.chunk, before = true) {
    if (at > begin && at % segment_rows(scan.chunk) == 0) {
      add_states<T>(state, chunk.part, nullptr, chunk.base);
      std::fill(chunk.part, chunk.part + state, T{0});
    }
    chunk.rows = std::min(scan.chunk, end - at);
    const std::int64_t whole = whole_vectors(chunk.rows, kAttentionTileRows);
    pack_scan_rows(scan.a, at, chunk.rows, chunk.a, size.depth);
    std::fill(chunk.a + chunk.rows * size.depth, chunk.a + whole * size.depth, T{0});
    pack_keys(scan, size, at, chunk);
    for (std::int64_t j = 0; j < chunk.rows; j += kKeyBlock) {
      pack_head_transposed<T>({chunk.b + j * size.depth, size.depth}, std::min(kKeyBlock, chunk.rows - j),
                              scan.b.width(), chunk.bt + j * size.depth);
    }
    if (before) add_states(state, chunk.part, chunk.base, chunk.sum);
    run_chunk(scan, size, chunk, at, before ? chunk.sum : nullptr);
    if (at + chunk.rows < end || last != nullptr) add_chunk(size, scan.b.width(), chunk, chunk.part);
  }
  if (last != nullptr) add_states(state, chunk.part, chunk.base, last);
}

/// Rows [begin, end) of a scan that is not causal; `total` is the sum of all rows of b and c.
template <class T>
void run_full_on_target(const LinearScan<T>& scan, std::int64_t begin, std::int64_t end, const T* total, T* scratch) {
  const ScanSize size(scan.chunk, scan.a.width(), scan.c.cols);
  ScanChunk<T> chunk(size, scratch);
  for (std::int64_t at = begin; at < end; at += scan.chunk) {
    chunk.rows = std::min(scan.chunk, end - at);
    const std::int64_t whole = whole_vectors(chunk.rows, kAttentionTileRows);
    pack_scan_rows(scan.a, at, chunk.rows, chunk.a, size.depth);
    std::fill(chunk.a + chunk.rows * size.depth, chunk.a + whole * size.depth, T{0});
    run_chunk(scan, size, chunk, at, total);
  }
}

/// base [n] += part.
template <class T>
void add_states_on_target(std::int64_t n, const T* part, T* base) {
  add_states<T>(n, part, nullptr, base);
}

/// dd_t = −inverse_t · (dy_t·y_t), or 0 where the floor holds; see linear_attention.h.
template <class T>
void denominator_gradients_on_target(std::int64_t rows, std::int64_t cols, HeadRows<const T> y, HeadRows<const T> dy,
                                     const T* inverse, T floor, T* dd) {
  for (std::int64_t t = 0; t < rows; ++t) {
    const T *const value = y.data + t * y.row_stride, *const gradient = dy.data + t * dy.row_stride;
    const double dot = sum_row<T>(cols, [=](const auto& at, std::int64_t i)
                                            HWY_ATTR { return hn::Mul(at.Load(value + i), at.Load(gradient + i)); });
    const bool floored = floor > 0 && inverse[t] == T{1} / floor;
    dd[t] = floored ? T{0} : -inverse[t] * static_cast<T>(dot);
  }
}

MAKI_KERNEL(sum_segment_on_target);
MAKI_KERNEL(run_causal_on_target);
MAKI_KERNEL(run_full_on_target);
MAKI_KERNEL(add_states_on_target);
MAKI_KERNEL(denominator_gradients_on_target);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {
MAKI_EXPORT(sum_segment_on_target);
MAKI_EXPORT(run_causal_on_target);
MAKI_EXPORT(run_full_on_target);
MAKI_EXPORT(add_states_on_target);
MAKI_EXPORT(denominator_gradients_on_target);

template <class T>
ScanKernels<T> scan_kernels() {
  return {MAKI_DISPATCH(sum_segment_on_target, T), MAKI_DISPATCH(run_causal_on_target, T),
          MAKI_DISPATCH(run_full_on_target, T), MAKI_DISPATCH(add_states_on_target, T),
          MAKI_DISPATCH(denominator_gradients_on_target, T)};
}
template ScanKernels<float> scan_kernels();
template ScanKernels<double> scan_kernels();

}  // namespace maki::kernels
#endif  // HWY_ONCE
