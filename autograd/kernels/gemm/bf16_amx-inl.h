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
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/amx.h"
#include "autograd/kernels/gemm/bf16_block-inl.h"
#include "autograd/kernels/gemm/bf16_pack-inl.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/unroll.h"

#if MAKI_HAVE_BF16
HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kBf16TileRows = 16;  // of an AMX tile
inline constexpr std::int64_t kBf16TileElements = kBf16TileRows * kBf16Depth;

/// Sets the tile registers of sums, kDown by kAcross of them from register 0 on, to the numbers at `start`, whose rows
/// are `stride` elements apart (0: all rows are equal), or to 0 if it is null.
template <int kDown, int kAcross>
HWY_INLINE void bf16_amx_start(const float* start, std::ptrdiff_t stride) {
  const std::ptrdiff_t bytes = stride * std::ptrdiff_t{sizeof(float)};
  if (start == nullptr) {
    amx::zero<0>();
    if constexpr (kAcross == 2) amx::zero<1>();
    if constexpr (kDown == 2) amx::zero<2>();
    if constexpr (kDown == 2 && kAcross == 2) amx::zero<3>();
  } else {
    const float* const below = start + kBf16TileRows * stride;
    amx::load<0>(start, bytes);
    if constexpr (kAcross == 2) amx::load<1>(start + kBf16TileRows, bytes);
    if constexpr (kDown == 2) amx::load<2>(below, bytes);
    if constexpr (kDown == 2 && kAcross == 2) amx::load<3>(below + kBf16TileRows, bytes);
  }
}

/// kDown by kAcross AMX tiles: `sum` [16 kDown, 16 kAcross], its rows `stride` elements apart, receives the chain that
/// begins at `start` (see bf16_amx_start()). Tile registers 0 to 3 hold the sums, 4 and 5 hold A, 6 and 7 hold B.
template <int kDown, int kAcross>
HWY_NOINLINE void bf16_amx_tile(const Bf16TileCall<std::uint16_t>& call, const float* start,
                                std::ptrdiff_t start_stride, float* sum, std::ptrdiff_t stride) {
  bf16_amx_start<kDown, kAcross>(start, start_stride);
  for (std::int64_t i = 0; i < kBf16TileRows * kDown && call.ahead != nullptr; ++i) {
    const std::byte* const row = call.ahead + i * call.ahead_stride;
    for (std::ptrdiff_t at = 0; at < kAcross * kBf16TileRows * call.ahead_size; at += 64) hwy::Prefetch(row + at);
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
  const std::ptrdiff_t bytes = stride * std::ptrdiff_t{sizeof(float)};
  amx::store<0>(sum, bytes);
  if constexpr (kAcross == 2) amx::store<1>(sum + kBf16TileRows, bytes);
  if constexpr (kDown == 2) amx::store<2>(sum + kBf16TileRows * stride, bytes);
  if constexpr (kDown == 2 && kAcross == 2) amx::store<3>(sum + kBf16TileRows * stride + kBf16TileRows, bytes);
}

/// Computes a block with as many tiles as the rows and columns of the call need.
inline void bf16_amx_tile_of(std::int64_t rows, const Bf16TileCall<std::uint16_t>& call, const float* start,
                             std::ptrdiff_t start_stride, float* sum, std::ptrdiff_t stride) {
  if (rows > kBf16TileRows) {
    call.columns > kBf16TileRows ? bf16_amx_tile<2, 2>(call, start, start_stride, sum, stride)
                                 : bf16_amx_tile<2, 1>(call, start, start_stride, sum, stride);
  } else {
    call.columns > kBf16TileRows ? bf16_amx_tile<1, 2>(call, start, start_stride, sum, stride)
                                 : bf16_amx_tile<1, 1>(call, start, start_stride, sum, stride);
  }
}

/// A tile that extends beyond the edge of C, or whose chain begins at C and a row: computed in a buffer.
inline HWY_NOINLINE void bf16_amx_buffered(std::int64_t rows, const Bf16TileCall<std::uint16_t>& call) {
  const Bf16Floats d;
  HWY_ALIGN float buffer[kBf16PanelWidth * kBf16PanelWidth] = {};
  const auto for_each = [&](auto visit) HWY_ATTR {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < call.columns; j += kBf16TileRows) {
        visit(buffer + i * kBf16PanelWidth + j, call.c + i * call.ldc + j, j, call.columns - j);
      }
    }
  };
  for_each([&](float* sum, const float* c, std::int64_t j, std::int64_t count) HWY_ATTR {
    Bf16Vec start = hn::Zero(d);
    if (call.start_row != nullptr) start = LoadPartial(d, call.start_row + j, count);
    if (call.accumulate) start = hn::Add(LoadPartial(d, c, count), start);
    hn::Store(start, d, sum);
  });
  bf16_amx_tile_of(rows, call, buffer, kBf16PanelWidth, buffer, kBf16PanelWidth);
  for_each([&](const float* sum, float* c, std::int64_t /*j*/, std::int64_t count)
               HWY_ATTR { StorePartial(hn::Load(d, sum), d, c, count); });
}

/// GEMM on AMX tiles (bf16_block()).
struct Bf16Amx : Bf16Packing<Bf16TileOrder> {
  static constexpr int kTileRows = kBf16PanelWidth, kTileColumns = kBf16PanelWidth, kRowsTogether = 1;
  using ThreadScope = amx::TileConfig;

  static void tile(std::int64_t rows, const Bf16TileCall<Element>& call) {
    if (rows % kBf16TileRows != 0 || call.columns % kBf16TileRows != 0 ||
        (call.accumulate && call.start_row != nullptr)) {
      bf16_amx_buffered(rows, call);
    } else if (call.accumulate) {
      bf16_amx_tile_of(rows, call, call.c, call.ldc, call.c, call.ldc);
    } else {
      bf16_amx_tile_of(rows, call, call.start_row, 0, call.c, call.ldc);
    }
  }
};

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // MAKI_HAVE_BF16

#endif  // MAKI_KERNELS_GEMM_BF16_AMX_INL_H_
