// The register tile of products of operands rounded to bfloat16, whose inner loop is that of a kernel. Included once
// for every SIMD target.
#if defined(MAKI_KERNELS_GEMM_BF16_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BF16_TILE_INL_H_
#undef MAKI_KERNELS_GEMM_BF16_TILE_INL_H_
#else
#define MAKI_KERNELS_GEMM_BF16_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include <utility>

#include "autograd/kernels/gemm/bf16_block-inl.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A tile of kRows rows and kVecs vectors. Not inlined: it runs in the mode of FlushSubnormals.
template <class Kernel, int kRows, int kVecs>
HWY_NOINLINE void bf16_tile(const Bf16TileCall<typename Kernel::Element>& call) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  hn::Vec<decltype(d)> sum[kRows][kVecs];
  MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
    const std::int64_t count = call.columns - v * kLanes;
    const auto start = call.start_row == nullptr ? hn::Zero(d) : LoadPartial(d, call.start_row + v * kLanes, count);
    MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
      float* const c = call.c + i * call.ldc + v * kLanes;
      sum[i][v] = call.accumulate ? hn::Add(LoadPartial(d, c, count), start) : start;
      hwy::Prefetch(c);
    }
  }
  for (std::int64_t g = 0; g < call.groups; ++g) {
    Kernel::add_group(d, call.a + g * kBf16GroupElements, call.b + g * kBf16GroupElements, sum);
  }
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
    MAKI_UNROLL for (int v = 0; v < kVecs; ++v) {
      StorePartial(sum[i][v], d, call.c + i * call.ldc + v * kLanes, call.columns - v * kLanes);
    }
  }
}

template <class Kernel, int... kRows>
void bf16_tile_of(std::int64_t rows, const Bf16TileCall<typename Kernel::Element>& call,
                  std::integer_sequence<int, kRows...>) {
  using Tile = void (*)(const Bf16TileCall<typename Kernel::Element>&);
  static constexpr Tile kOneVector[] = {bf16_tile<Kernel, kRows + 1, 1>...},
                        kTwoVectors[] = {bf16_tile<Kernel, kRows + 1, 2>...};
  const bool one = call.columns <= static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));
  (one ? kOneVector : kTwoVectors)[rows - 1](call);
}

/// A tile of 1 … Kernel::kTileRows rows, and of one or two vectors of columns.
template <class Kernel>
void bf16_tile_of(std::int64_t rows, const Bf16TileCall<typename Kernel::Element>& call) {
  bf16_tile_of<Kernel>(rows, call, std::make_integer_sequence<int, Kernel::kTileRows>());
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_GEMM_BF16_TILE_INL_H_
