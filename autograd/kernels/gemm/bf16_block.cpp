// The table of kernels for products that round their operands to bfloat16, compiled once per target.
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/plan.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/bf16_block.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/bf16_amx-inl.h"
#include "autograd/kernels/gemm/bf16_floats-inl.h"
#include "autograd/kernels/gemm/bf16_matrices-inl.h"
#include "autograd/kernels/gemm/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {

// A chain, and a part that one task packs, begin at a group of their panel (GemmProduct::panel_at()).
static_assert(kGemmChainLength % kBf16Depth == 0 && kMaxPackTaskDepth % kBf16Depth == 0);
static_assert(kBf16TaskDepth % kBf16Depth == 0 && kMaxBf16Depth % kBf16Depth == 0);
#if MAKI_HAVE_BF16
static_assert(kBf16TaskExtent <= kMaxBf16PackedRows && kMaxTaskTiles * kBf16PanelWidth <= kMaxBf16PackedRows);
#endif

GemmKernels<float> bf16_kernels_on([[maybe_unused]] Bf16Unit unit) {
#if MAKI_HAVE_BF16
  if (unit == Bf16Unit::amx) {
    GemmKernels<float> kernels = bf16_kernels_of<Bf16Amx>();
    kernels.tile.is_amx = true;
    return kernels;
  }
  if (unit == Bf16Unit::pairs) return bf16_kernels_of<Bf16Pairs>();
#endif
#if HWY_ARCH_ARM_A64
  if (unit == Bf16Unit::matrices) return bf16_kernels_of<Bf16Matrices>();
#endif
  return bf16_kernels_of<Bf16Floats32>();
}

RoundToBf16 bf16_rounding_on([[maybe_unused]] Bf16Unit unit) {
#if MAKI_HAVE_BF16
  if (unit != Bf16Unit::floats) return &Bf16Amx::round_row;
#endif
  return &Bf16Floats32::round_row;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(bf16_kernels_on);
GemmKernels<float> bf16_kernels() { return MAKI_ON_TARGET(bf16_kernels_on)(bf16_unit()); }

MAKI_TARGETS(bf16_rounding_on);
RoundToBf16 bf16_rounding() {
  require_target();
  return MAKI_ON_TARGET(bf16_rounding_on)(bf16_unit());
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
