// The table of kernels for float32 on AMX, compiled once per target; empty on targets that have no AVX-512, for which
// uses_amx() is false.
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/plan.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/amx_block.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/amx_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

#if MAKI_HAVE_AMX

// A chain, and a part that one task packs, begin at a group of their panel (GemmProduct::panel_at()).
static_assert(kGemmChainLength % kAmxTileDepth == 0 && kMaxPackTaskDepth % kAmxTileDepth == 0);

// GEMM counts the sizes of packed panels in float32 numbers, each of which takes the space of two bfloat16 numbers.
inline void amx_pack_a_panel(std::int64_t m, std::int64_t k, const GemmOperand<float>& a, std::int64_t lda,
                             bool a_transposed, float* panel) {
  amx_pack_a(m, k, a.values, lda, a_transposed, reinterpret_cast<std::uint16_t*>(panel));
}
inline void amx_pack_b_panels(std::int64_t k, std::int64_t n, const GemmOperand<float>& b, std::int64_t ldb,
                              bool b_transposed, float* panels, std::int64_t panel_stride) {
  amx_pack_b(k, n, b.values, ldb, b_transposed, reinterpret_cast<std::uint16_t*>(panels), 2 * panel_stride);
}

GemmKernels<float> amx_kernels_f32() {
  return {.tile = {.rows = kAmxPanelWidth,
                   .columns = kAmxPanelWidth,
                   .group = kAmxTileDepth,
                   .group_rows = kAmxGroupElements / 2 / kAmxPanelWidth,
                   .packed_rows = kAmxPanelWidth,
                   .packs_a = true,
                   .is_amx = true,
                   .min_tasks = 4,
                   .max_thin_rows = 0},
          .multiply = &amx_block,
          .pack_b = &amx_pack_b_panels,
          .pack_a = &amx_pack_a_panel,
          .stream = nullptr};
}

#else

GemmKernels<float> amx_kernels_f32() { return {}; }

#endif

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(amx_kernels_f32);
GemmKernels<float> amx_kernels() { return MAKI_ON_TARGET(amx_kernels_f32)(); }

}  // namespace maki::kernels
#endif  // HWY_ONCE
