// The SIMD half of GEMM: one block on one thread, for every target.
#include "autograd/kernels/gemm_block.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm_block.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm_block-inl.h"
#include "autograd/kernels/gemm_thin-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

GemmTile gemm_tile_f32() { return {kTileRows, 2 * hn::MaxLanes(GemmVec<float>()), kPackedRows<float>, kThinRows}; }
GemmTile gemm_tile_f64() { return {kTileRows, 2 * hn::MaxLanes(GemmVec<double>()), kPackedRows<double>, kThinRows}; }

void gemm_multiply_f32(const GemmBlock<float>& block) { gemm_block(block); }
void gemm_multiply_f64(const GemmBlock<double>& block) { gemm_block(block); }

void gemm_thin_f32(const Gemm<float>& g, std::int64_t begin, std::int64_t end) { gemm_thin_columns(g, begin, end); }
void gemm_thin_f64(const Gemm<double>& g, std::int64_t begin, std::int64_t end) { gemm_thin_columns(g, begin, end); }

void gemm_pack_b_f32(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, bool b_transposed, float* panels,
                     std::int64_t panel_stride) {
  pack_panels(k, n, b, ldb, b_transposed, panels, panel_stride);
}
void gemm_pack_b_f64(std::int64_t k, std::int64_t n, const double* b, std::int64_t ldb, bool b_transposed,
                     double* panels, std::int64_t panel_stride) {
  pack_panels(k, n, b, ldb, b_transposed, panels, panel_stride);
}

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
HWY_EXPORT(gemm_pack_b_f32);
HWY_EXPORT(gemm_pack_b_f64);

template <>
GemmTile gemm_tile<float>() {
  return HWY_DYNAMIC_DISPATCH(gemm_tile_f32)();
}
template <>
GemmTile gemm_tile<double>() {
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
void gemm_pack_b(std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, bool b_transposed, float* panels,
                 std::int64_t panel_stride) {
  HWY_DYNAMIC_DISPATCH(gemm_pack_b_f32)(k, n, b, ldb, b_transposed, panels, panel_stride);
}
template <>
void gemm_pack_b(std::int64_t k, std::int64_t n, const double* b, std::int64_t ldb, bool b_transposed, double* panels,
                 std::int64_t panel_stride) {
  HWY_DYNAMIC_DISPATCH(gemm_pack_b_f64)(k, n, b, ldb, b_transposed, panels, panel_stride);
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
