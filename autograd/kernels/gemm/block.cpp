// The SIMD half of GEMM (see gemm/block.h), compiled once per target.
#include "autograd/kernels/gemm/block.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/block.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/amx_tile-inl.h"
#include "autograd/kernels/gemm/block-inl.h"
#include "autograd/kernels/gemm/thin-inl.h"
#include "autograd/kernels/simd/target.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

/// With 14 rows, a tile's part of A is 28 KiB per chain of 512 float32 and stays in the level-1 cache.
template <class T>
GemmTile vector_tile() {
  return {.rows = kGemmTileRows,
          .columns = 2 * hn::MaxLanes(GemmVec<T>()),
          .group = 1,
          .group_rows = 1,
          .packed_rows = kPackedRows<T>,
          .is_amx = false,
          .min_tasks = 16,
          .max_thin_rows = kMaxThinRows};
}

GemmTile gemm_tile_f64() { return vector_tile<double>(); }
void gemm_multiply_f64(const GemmBlock<double>& block) { gemm_block(block); }
void gemm_pack_b_f64(std::int64_t k, std::int64_t n, const double* b, std::int64_t ldb, bool b_transposed,
                     double* panels, std::int64_t panel_stride) {
  pack_panels(k, n, b, ldb, b_transposed, panels, panel_stride);
}

void gemm_thin_f32(const Gemm<float>& g, std::int64_t begin, std::int64_t end) { gemm_thin_columns(g, begin, end); }
void gemm_thin_f64(const Gemm<double>& g, std::int64_t begin, std::int64_t end) { gemm_thin_columns(g, begin, end); }

#if MAKI_HAVE_AMX

static_assert(kGemmChain % kAmxPassDepth == 0);

GemmTile gemm_tile_f32(bool tiles) {
  if (!tiles || !uses_amx()) return vector_tile<float>();
  return {.rows = kAmxPanelWidth,
          .columns = kAmxPanelWidth,
          .group = kAmxTileDepth,
          .group_rows = kAmxPanelGroup / 2 / kAmxPanelWidth,
          .packed_rows = kAmxPanelWidth,
          .is_amx = true,
          .min_tasks = 4,
          .max_thin_rows = 0};
}

void gemm_multiply_f32(const GemmBlock<float>& block) {
  if (block.tiles && uses_amx()) return amx_block(block);
  gemm_block(block);
}
void gemm_pack_a_f32(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, bool a_transposed,
                     float* panel) {
  amx_pack_a(m, k, a, lda, a_transposed, reinterpret_cast<std::uint16_t*>(panel));
}
void gemm_pack_b_f32(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, bool b_transposed, float* panels,
                     std::int64_t panel_stride, bool tiles) {
  if (!tiles || !uses_amx()) return pack_panels(k, n, b, ldb, b_transposed, panels, panel_stride);
  amx_pack_b(k, n, b, ldb, b_transposed, reinterpret_cast<std::uint16_t*>(panels), 2 * panel_stride);
}

#else

GemmTile gemm_tile_f32(bool) { return vector_tile<float>(); }
void gemm_multiply_f32(const GemmBlock<float>& block) { gemm_block(block); }
void gemm_pack_a_f32(std::int64_t, std::int64_t, const float*, std::int64_t, bool, float*) {}
void gemm_pack_b_f32(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, bool b_transposed, float* panels,
                     std::int64_t panel_stride, bool) {
  pack_panels(k, n, b, ldb, b_transposed, panels, panel_stride);
}

#endif

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

HWY_EXPORT(gemm_tile_f32);
HWY_EXPORT(gemm_tile_f64);
HWY_EXPORT(gemm_multiply_f32);
HWY_EXPORT(gemm_multiply_f64);
HWY_EXPORT(gemm_thin_f32);
HWY_EXPORT(gemm_thin_f64);
HWY_EXPORT(gemm_pack_a_f32);
HWY_EXPORT(gemm_pack_b_f32);
HWY_EXPORT(gemm_pack_b_f64);

template <>
GemmTile gemm_tile<float>(bool tiles) {
  return HWY_DYNAMIC_DISPATCH(gemm_tile_f32)(tiles);
}
template <>
GemmTile gemm_tile<double>(bool) {
  return HWY_DYNAMIC_DISPATCH(gemm_tile_f64)();
}

template <>
void gemm_multiply(const GemmBlock<float>& block) {
  HWY_DYNAMIC_DISPATCH(gemm_multiply_f32)(block);
}
template <>
void gemm_multiply(const GemmBlock<double>& block) {
  HWY_DYNAMIC_DISPATCH(gemm_multiply_f64)(block);
}

template <>
void gemm_thin(const Gemm<float>& g, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemm_thin_f32)(g, begin, end);
}
template <>
void gemm_thin(const Gemm<double>& g, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemm_thin_f64)(g, begin, end);
}

template <>
void gemm_pack_a(std::int64_t m, std::int64_t k, const float* a, std::int64_t lda, bool a_transposed, float* panel) {
  HWY_DYNAMIC_DISPATCH(gemm_pack_a_f32)(m, k, a, lda, a_transposed, panel);
}
template <>
void gemm_pack_a(std::int64_t, std::int64_t, const double*, std::int64_t, bool, double*) {}

template <>
void gemm_pack_b(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, bool b_transposed, float* panels,
                 std::int64_t panel_stride, bool tiles) {
  HWY_DYNAMIC_DISPATCH(gemm_pack_b_f32)(k, n, b, ldb, b_transposed, panels, panel_stride, tiles);
}
template <>
void gemm_pack_b(std::int64_t k, std::int64_t n, const double* b, std::int64_t ldb, bool b_transposed, double* panels,
                 std::int64_t panel_stride, bool) {
  HWY_DYNAMIC_DISPATCH(gemm_pack_b_f64)(k, n, b, ldb, b_transposed, panels, panel_stride);
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
