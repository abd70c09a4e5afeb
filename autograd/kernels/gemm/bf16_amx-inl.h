// Products of operands rounded to bfloat16 on AMX tiles. Included once for every SIMD target; empty unless it is an
// x86-64 target with AVX-512. Whether the CPU has AMX is asked at run time: amx::available().
#if defined(MAKI_KERNELS_GEMM_BF16_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_GEMM_BF16_AMX_INL_H_
#undef MAKI_KERNELS_GEMM_BF16_AMX_INL_H_
#else
#define MAKI_KERNELS_GEMM_BF16_AMX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/amx.h"
#include "autograd/kernels/gemm/bf16_block-inl.h"
#include "autograd/kernels/gemm/bf16_pack-inl.h"
#include "autograd/kernels/simd/partial-inl.h"

#if MAKI_HAVE_BF16
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kBf16TileRows = 16;  // of an AMX tile
inline constexpr std::int64_t kBf16TileElements = kBf16TileRows * kBf16Depth;

/// kDown by kAcross AMX tiles: `sum` [16 kDown, 16 kAcross], its rows `stride` elements apart, receives the chain,
/// which starts from start_row in every row (16 kAcross numbers; null: zeros). Tile registers 0 to 3 hold the sums, 4
/// and 5 hold A, 6 and 7 hold B.
template <int kDown, int kAcross>
HWY_NOINLINE void bf16_amx_tile(const Bf16TileCall<std::uint16_t>& call, const float* start_row, float* sum,
                                std::ptrdiff_t stride) {
  const std::ptrdiff_t bytes = stride * std::ptrdiff_t{sizeof(float)};
  if (start_row != nullptr) {
    amx::load<0>(start_row, 0);
    if constexpr (kAcross == 2) amx::load<1>(start_row + kBf16TileRows, 0);
    if constexpr (kDown == 2) amx::load<2>(start_row, 0);
    if constexpr (kDown == 2 && kAcross == 2) amx::load<3>(start_row + kBf16TileRows, 0);
  } else {
    amx::zero<0>();
    if constexpr (kAcross == 2) amx::zero<1>();
    if constexpr (kDown == 2) amx::zero<2>();
    if constexpr (kDown == 2 && kAcross == 2) amx::zero<3>();
  }
  for (std::int64_t g = 0; g < call.groups; ++g) {
    const std::uint16_t *const a = call.a + g * kBf16GroupElements, *const b = call.b + g * kBf16GroupElements;
    amx::load<4>(a, 64);
    amx::load<6>(b, 64);
    amx::multiply<0, 4, 6>();
    if constexpr (kAcross == 2) {
      amx::load<7>(b + kBf16TileElements, 64);
      amx::multiply<1, 4, 7>();
    }
    if constexpr (kDown == 2) {
      amx::load<5>(a + kBf16TileElements, 64);
      amx::multiply<2, 5, 6>();
    }
    if constexpr (kDown == 2 && kAcross == 2) amx::multiply<3, 5, 7>();
  }
  amx::store<0>(sum, bytes);
  if constexpr (kAcross == 2) amx::store<1>(sum + kBf16TileRows, bytes);
  if constexpr (kDown == 2) amx::store<2>(sum + kBf16TileRows * stride, bytes);
  if constexpr (kDown == 2 && kAcross == 2) amx::store<3>(sum + kBf16TileRows * stride + kBf16TileRows, bytes);
}

inline void bf16_amx_tile_of(std::int64_t rows, const Bf16TileCall<std::uint16_t>& call, const float* start_row,
                             float* sum, std::ptrdiff_t stride) {
  if (rows > kBf16TileRows) {
    call.columns > kBf16TileRows ? bf16_amx_tile<2, 2>(call, start_row, sum, stride)
                                 : bf16_amx_tile<2, 1>(call, start_row, sum, stride);
  } else {
    call.columns > kBf16TileRows ? bf16_amx_tile<1, 2>(call, start_row, sum, stride)
                                 : bf16_amx_tile<1, 1>(call, start_row, sum, stride);
  }
}

/// A tile that is added to C or extends beyond its edge: computed in a buffer, then added or copied to C.
inline HWY_NOINLINE void bf16_amx_buffered(std::int64_t rows, const Bf16TileCall<std::uint16_t>& call) {
  const Bf16Floats d;
  HWY_ALIGN float buffer[kBf16PanelWidth * kBf16PanelWidth];
  HWY_ALIGN float start[kBf16PanelWidth] = {};
  if (call.start_row != nullptr) std::copy_n(call.start_row, call.columns, start);
  bf16_amx_tile_of(rows, call, call.start_row != nullptr ? start : nullptr, buffer, kBf16PanelWidth);
  for (std::int64_t j = 0; j < call.columns; j += kBf16TileRows) {
    const std::int64_t count = std::min(kBf16TileRows, call.columns - j);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const to = call.c + i * call.ldc + j;
      Bf16Vec sum = hn::Load(d, buffer + i * kBf16PanelWidth + j);
      if (call.accumulate) sum = hn::Add(LoadPartial(d, to, count), sum);
      StorePartial(sum, d, to, count);
    }
  }
}

/// GEMM on AMX tiles (bf16_block()).
struct Bf16Amx : Bf16Packing<Bf16TileOrder> {
  static constexpr int kTileRows = kBf16PanelWidth, kTileColumns = kBf16PanelWidth;
  using ThreadScope = amx::TileConfig;

  static void tile(std::int64_t rows, const Bf16TileCall<Element>& call) {
    if (call.accumulate || rows % kBf16TileRows != 0 || call.columns % kBf16TileRows != 0) {
      bf16_amx_buffered(rows, call);
    } else {
      bf16_amx_tile_of(rows, call, call.start_row, call.c, call.ldc);
    }
  }
};

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_BF16

#endif  // MAKI_KERNELS_GEMM_BF16_AMX_INL_H_
