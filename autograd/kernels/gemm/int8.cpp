#include "autograd/kernels/gemm/int8.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "autograd/core/parallel.h"
#include "autograd/kernels/gemm/block.h"
#include "autograd/kernels/gemm/plan.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/gemm/int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/activate-inl.h"
#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Int8Floats = hn::ScalableTag<float>;
using Int8Vec = hn::Vec<Int8Floats>;
constexpr std::int64_t kInt8Lanes = hn::MaxLanes(Int8Floats());
constexpr int kInt8Vectors = static_cast<int>(Int8Block::kRows / kInt8Lanes);  // of the rows of a block

/// Vector v of step p of a block.
HWY_INLINE Int8Vec int8_floats(const Int8Block& block, std::int64_t p, int v) {
  const Int8Floats d;
  const hn::Rebind<std::int32_t, Int8Floats> whole;
  const hn::Rebind<std::int8_t, Int8Floats> code;
  const auto codes = hn::LoadU(code, block.codes[p] + v * kInt8Lanes);
  return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(whole, codes)), hn::LoadU(d, block.scales + v * kInt8Lanes));
}

/// Rows [row, row + kRows) of C, in the columns of panels [panel, panel + kPanels) of B: beta C + A B. A chain goes
/// through whole groups of B.
template <int kRows, int kPanels>
HWY_NOINLINE void int8_tile(const Gemm<float>& g, std::int64_t row, std::int64_t panel) {
  static_assert(kGemmChainLength % Int8Block::kSteps == 0);
  constexpr std::int64_t kSteps = Int8Block::kSteps;
  const Int8Floats d;
  const Int8Matrix& b = *g.b.int8;
  const Int8Block* blocks[kPanels];
  MAKI_UNROLL for (int q = 0; q < kPanels; ++q) blocks[q] = b.panel(panel + q);
  const float* a[kRows];
  MAKI_UNROLL for (int i = 0; i < kRows; ++i) a[i] = g.a.values + (row + i) * g.lda;
  Int8Vec sum[kPanels][kInt8Vectors][kRows];
  const auto each_sum = [&](const auto& body) HWY_ATTR {
    MAKI_UNROLL for (int q = 0; q < kPanels; ++q) {
      MAKI_UNROLL for (int v = 0; v < kInt8Vectors; ++v) {
        const std::int64_t column = (panel + q) * Int8Block::kRows + v * kInt8Lanes;
        MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
          body(sum[q][v][i], g.c + (row + i) * g.ldc + column, column, g.n - column);
        }
      }
    }
  };
  for (std::int64_t group = 0; group < b.groups();) {
    each_sum([d](Int8Vec& s, float*, std::int64_t, std::int64_t) HWY_ATTR { s = hn::Zero(d); });
    const bool first = group == 0;
    const std::int64_t end = std::min(b.groups(), group + kGemmChainLength / kSteps);
    for (; group < end; ++group) {
      const std::int64_t steps = std::min(kSteps, g.k - group * kSteps);
      for (std::int64_t p = 0; p < steps; ++p) {
        MAKI_UNROLL for (int q = 0; q < kPanels; ++q) {
          MAKI_UNROLL for (int v = 0; v < kInt8Vectors; ++v) {
            const Int8Vec w = int8_floats(blocks[q][group], p, v);
            MAKI_UNROLL for (int i = 0; i < kRows; ++i) {
              sum[q][v][i] = hn::MulAdd(hn::Set(d, a[i][group * kSteps + p]), w, sum[q][v][i]);
            }
          }
        }
      }
    }
    const bool adds = !first || g.beta == 1, last = group == b.groups();
    each_sum([&](Int8Vec& s, float* c, std::int64_t column, std::int64_t count) HWY_ATTR {
      if (adds) s = hn::Add(LoadPartial(d, c, count), s);
      if (last && g.bias != nullptr) s = hn::Add(s, LoadPartial(d, g.bias + column, count));
      StorePartial(s, d, c, count);
    });
  }
}

/// Rows [row, row + kRows) of C, in the columns of panels [begin, end) of B, as many of them at a time as leave the
/// sums in registers and hide the latency of a multiply-add.
template <int kRows>
void int8_rows(const Gemm<float>& g, std::int64_t row, std::int64_t begin, std::int64_t end) {
  constexpr int kPanels = std::clamp(8 / (kInt8Vectors * kRows), 1, 4);
  std::int64_t panel = begin;
  for (; panel + kPanels <= end; panel += kPanels) int8_tile<kRows, kPanels>(g, row, panel);
  for (; panel < end; ++panel) int8_tile<kRows, 1>(g, row, panel);
}

/// All rows of C, in the columns of panels [begin, end) of B.
void int8_panels(const Gemm<float>& g, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kMostRows = 4;
  constexpr std::array kTiles = {&int8_rows<1>, &int8_rows<2>, &int8_rows<3>, &int8_rows<4>};
  const std::int64_t column = begin * Int8Block::kRows, columns = std::min(g.n, end * Int8Block::kRows) - column;
  for (std::int64_t row = 0; row < g.m; row += kMostRows) {
    const std::int64_t rows = std::min(kMostRows, g.m - row);
    kTiles[static_cast<std::size_t>(rows - 1)](g, row, begin, end);
    if (g.activation == GemmActivation::none) continue;
    for (std::int64_t i = row; i < row + rows; ++i) {
      float* const c = g.c + i * g.ldc + column;
      activate_row<StoreInCaches, StoreInCaches, float>(g.activation, columns, c, c, nullptr);
    }
  }
}

/// Columns [first, first + columns) of op(B), a panel as gemm() packs it.
void int8_unpack(const Int8Matrix& b, std::int64_t first, std::int64_t columns, float* packed) {
  const Int8Floats d;
  for (std::int64_t at = 0; at < columns; at += kInt8Lanes) {
    const std::int64_t panel = (first + at) / Int8Block::kRows;
    const int v = static_cast<int>((first + at) % Int8Block::kRows / kInt8Lanes);
    for (std::int64_t p = 0; p < b.in; ++p) {
      const Int8Vec w = panel < b.panels()
                            ? int8_floats(b.panel(panel)[p / Int8Block::kSteps], p % Int8Block::kSteps, v)
                            : hn::Zero(d);
      hn::StoreU(w, d, packed + p * columns + at);
    }
  }
}

/// Rounds one row of a block; false if a number is not finite.
HWY_INLINE bool round_row(const float* x, std::int64_t count, std::int64_t row, Int8Block& block) {
  constexpr float kLeast = 1e-30F;  // the inverse of a 127th of less would overflow
  const Int8Floats d;
  const hn::Rebind<std::int32_t, Int8Floats> whole;
  Int8Vec largest = hn::Zero(d);
  bool finite = true;
  for (std::int64_t p = 0; p < count; p += kInt8Lanes) {
    const Int8Vec size = hn::Abs(LoadPartial(d, x + p, count - p));
    finite = finite && hn::AllTrue(d, hn::Le(size, hn::Set(d, hwy::HighestValue<float>())));
    largest = hn::Max(largest, size);
  }
  const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
  const float factor = finite && most > kLeast ? 127 / most : 0;
  block.scales[row] = factor > 0 ? most / 127 : 0;
  for (std::int64_t p = 0; p < count; p += kInt8Lanes) {
    HWY_ALIGN std::int32_t codes[kInt8Lanes];
    const Int8Vec scaled = hn::Mul(LoadPartial(d, x + p, finite ? count - p : 0), hn::Set(d, factor));
    hn::Store(hn::NearestInt(scaled), whole, codes);
    for (std::int64_t q = 0; q < std::min(kInt8Lanes, count - p); ++q) {
      block.codes[p + q][row] = static_cast<std::int8_t>(codes[q]);
    }
  }
  return finite;
}

bool round_panel_to_int8(const float* weight, const Int8Matrix& b, std::int64_t panel, Int8Block* blocks) {
  bool finite = true;
  for (std::int64_t group = 0; group < b.groups(); ++group) {
    Int8Block& block = blocks[panel * b.groups() + group] = {};
    const std::int64_t begin = group * Int8Block::kSteps, first = panel * Int8Block::kRows;
    for (std::int64_t row = 0; row < std::min(Int8Block::kRows, b.out - first); ++row) {
      const float* const x = weight + (first + row) * b.in + begin;
      finite = round_row(x, std::min(Int8Block::kSteps, b.in - begin), row, block) && finite;
    }
  }
  return finite;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_TARGETS(int8_panels);
MAKI_TARGETS(int8_unpack);
MAKI_TARGETS(round_panel_to_int8);

namespace {

/// The most rows of a product that reads B from memory once.
constexpr std::int64_t kMaxInt8Rows = 32;
/// Floats of a slab of B.
constexpr std::int64_t kMaxSlabFloats = 1 << 20;

/// The part of the product g from column `j` on whose columns of B are packed as floats.
Gemm<float> product_of_slab(const Gemm<float>& g, std::int64_t j, std::int64_t columns, const float* packed) {
  Gemm<float> slab = g;
  slab.b = {};
  slab.b_packed = packed;
  slab.n = std::min(columns, g.n - j);
  slab.c += j;
  if (g.bias != nullptr) slab.bias += j;
  return slab;
}

/// Columns of a slab: whole panels of packed floats.
std::int64_t slab_columns(const Gemm<float>& g) {
  const std::int64_t wide = vector_kernels<float>().tile.columns;
  return piece_length(g.n, kMaxSlabFloats / std::max<std::int64_t>(1, g.k), wide);
}

std::int64_t slab_bytes(const Gemm<float>& g) {
  return round_up(slab_columns(g) * g.k * std::int64_t{sizeof(float)}, 64);
}

}  // namespace

bool round_to_int8(const float* weight, const Int8Matrix& matrix, Int8Block* blocks) {
  require_target();
  const auto round = MAKI_ON_TARGET(round_panel_to_int8);
  std::atomic<bool> finite = true;
  parallel_for(matrix.panels(), 4 * Int8Block::kRows * matrix.in, [&](std::int64_t panel) {
    if (!round(weight, matrix, panel, blocks)) finite = false;
  });
  return finite;
}

std::int64_t int8_scratch_bytes(const Gemm<float>& g) {
  if (g.m <= kMaxInt8Rows) return 0;
  alignas(64) static constexpr float kAnyFloats[1] = {};
  const std::int64_t columns = slab_columns(g), last = (g.n - 1) / columns * columns;
  return slab_bytes(g) + std::max(gemm_scratch_bytes(product_of_slab(g, 0, columns, kAnyFloats)),
                                  gemm_scratch_bytes(product_of_slab(g, last, columns, kAnyFloats)));
}

void int8_gemm(const Gemm<float>& g, std::span<std::byte> scratch) {
  const Int8Matrix& b = *g.b.int8;
  if (g.m <= kMaxInt8Rows) {
    constexpr std::int64_t kPanelsPerTask = 4;
    const auto multiply = MAKI_ON_TARGET(int8_panels);
    parallel_for(ceil_div(b.panels(), kPanelsPerTask), kPanelsPerTask * Int8Block::kRows * g.k, [&](std::int64_t task) {
      multiply(g, task * kPanelsPerTask, std::min(b.panels(), (task + 1) * kPanelsPerTask));
    });
    return;
  }
  const auto unpack = MAKI_ON_TARGET(int8_unpack);
  const std::int64_t columns = slab_columns(g), wide = vector_kernels<float>().tile.columns;
  float* const packed = reinterpret_cast<float*>(scratch.data());
  const std::span<std::byte> rest = scratch.subspan(static_cast<std::size_t>(slab_bytes(g)));
  for (std::int64_t j = 0; j < g.n; j += columns) {
    const Gemm<float> slab = product_of_slab(g, j, columns, packed);
    parallel_for(ceil_div(slab.n, wide), wide * g.k,
                 [&](std::int64_t panel) { unpack(b, j + panel * wide, wide, packed + panel * wide * g.k); });
    gemm(slab, rest);
  }
}

}  // namespace maki::kernels
#endif  // HWY_ONCE
