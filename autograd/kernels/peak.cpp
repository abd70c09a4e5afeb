#include "autograd/kernels/peak.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/kernels/gemm/amx.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/peak.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "autograd/kernels/gemm/bf16_matrices-inl.h"
#include "autograd/kernels/gemm/bf16_pairs-inl.h"
#include "autograd/kernels/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A multiply-add takes 4 cycles and an x86 core starts two per cycle, so at least 8 independent chains are needed, and
// 16 registers have room for 12. Other cores, which may start four per cycle, have 32 registers.
inline constexpr int kChains = HWY_ARCH_X86 ? 12 : 16;

template <class T>
std::int64_t flop() {
  return 2 * kChains * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

template <class T>
double chains(std::int64_t rounds) {
  const hn::ScalableTag<T> d;
  const auto half = hn::Set(d, T{0.5});
  hn::Vec<decltype(d)> x[kChains];
  // Each chain starts from a different value, or the compiler would compute one chain instead of all of them.
  MAKI_UNROLL for (int i = 0; i < kChains; ++i) x[i] = hn::Set(d, static_cast<T>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
    MAKI_UNROLL for (int i = 0; i < kChains; ++i) x[i] = hn::MulAdd(x[i], half, half);
  }
  HWY_ALIGN T ends[hn::MaxLanes(d)];
  double sum = 0;
  for (int i = 0; i < kChains; ++i) {
    hn::Store(x[i], d, ends);
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) sum += static_cast<double>(ends[lane]);
  }
  return sum / (static_cast<double>(flop<T>()) / 2);
}

MAKI_KERNEL(flop);
MAKI_KERNEL(chains);

// Each step adds 1 · 1 + 0 · 1, two multiply-adds, to every lane of every chain. Returns the mean of the sums, divided
// by the number of rounds.
double pair_chains([[maybe_unused]] std::int64_t rounds) {
#if MAKI_HAVE_BF16
  constexpr std::uint32_t kOne = 0x3F80;  // in bfloat16
  const Bf16Floats d;
  const Bf16Bits bits;
  const hn::Repartition<std::uint32_t, Bf16Floats> pairs;
  const auto one_and_zero = hn::BitCast(bits, hn::Set(pairs, kOne)), ones = hn::Set(bits, std::uint16_t{kOne});
  Bf16Vec sum[kPairChains];
  MAKI_UNROLL for (int i = 0; i < kPairChains; ++i) sum[i] = hn::Zero(d);
  for (std::int64_t round = 0; round < rounds; ++round) {
    MAKI_UNROLL for (int i = 0; i < kPairChains; ++i) bf16_add_products(sum[i], one_and_zero, ones);
  }
  double total = 0;
  // Unrolled, or the sums would stay in memory.
  MAKI_UNROLL for (int i = 0; i < kPairChains; ++i) total +=
      static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum[i])));
  return total / (static_cast<double>(rounds) * kPairChains * kPairsInVector);
#else
  fail("run_bf16_chains: this target has no instructions for pairs; check bf16_unit() first");
#endif
}

// Each step adds 1 · 1 + 0 · 1 + 0 · 1 + 0 · 1 to each of the four sums of every chain. Returns as pair_chains().
double matrix_chains([[maybe_unused]] std::int64_t rounds) {
#if HWY_ARCH_ARM_A64
  constexpr std::uint16_t kOne = 0x3F80;  // in bfloat16
  const Bf16Quads bits;
  const RoundedFloats d;
  const auto ones = hn::Set(bits, kOne);
  const auto first = hn::BitCast(bits, hn::Set(hn::Repartition<std::uint64_t, Bf16Quads>(), std::uint64_t{kOne}));
  RoundedVec sum[kPairChains];
  MAKI_UNROLL for (int i = 0; i < kPairChains; ++i) sum[i] = hn::Zero(d);
  for (std::int64_t round = 0; round < rounds; ++round) {
    MAKI_UNROLL for (int i = 0; i < kPairChains; ++i) bf16_add_products(sum[i], first, ones);
  }
  double total = 0;
  MAKI_UNROLL for (int i = 0; i < kPairChains; ++i) total +=
      static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum[i])));
  return total / (static_cast<double>(rounds) * kPairChains * 4);
#else
  fail("run_bf16_chains: this target has no instructions for matrices; check bf16_unit() first");
#endif
}

void stream_f32(std::int64_t n, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::Stream(hn::Load(d, x + i), d, y + i);
  for (; i < n; ++i) y[i] = x[i];
  hwy::FlushStream();
}

// Reads several streams one cache line at a time, prefetching eight lines ahead in each: a single stream reads memory
// more slowly.
double sum_f32(std::int64_t n, const float* x) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kStreams = 8, kLineFloats = 16, kAheadFloats = 8 * kLineFloats, kLanes = hn::MaxLanes(d);
  const std::int64_t length = n / kStreams / kLineFloats * kLineFloats;
  hn::Vec<decltype(d)> sum[kStreams];
  MAKI_UNROLL for (int s = 0; s < kStreams; ++s) sum[s] = hn::Zero(d);
  for (std::int64_t line = 0; line < length; line += kLineFloats) {
    MAKI_UNROLL for (int s = 0; s < kStreams; ++s) {
      const float* const from = x + s * length + line;
      hwy::Prefetch(from + kAheadFloats);
      MAKI_UNROLL for (std::int64_t i = 0; i < kLineFloats; i += kLanes) {
        sum[s] = hn::Add(sum[s], hn::Load(d, from + i));
      }
    }
  }
  HWY_ALIGN float lanes[kLanes];
  double total = 0;
  for (int s = 0; s < kStreams; ++s) {
    hn::Store(sum[s], d, lanes);
    for (std::int64_t i = 0; i < kLanes; ++i) total += static_cast<double>(lanes[i]);
  }
  for (std::int64_t i = kStreams * length; i < n; ++i) total += static_cast<double>(x[i]);
  return total;
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(flop);
MAKI_EXPORT(chains);
MAKI_TARGETS(pair_chains);
MAKI_TARGETS(matrix_chains);
MAKI_TARGETS(stream_f32);
MAKI_TARGETS(sum_f32);

template <class T>
std::int64_t fma_flop_per_round() {
  return MAKI_DISPATCH(flop, T)();
}

template <class T>
double run_fma_chains(std::int64_t rounds) {
  return MAKI_DISPATCH(chains, T)(rounds);
}

namespace {
// Of AMX, as in gemm/amx_tile-inl.h: rows and columns of a float32 tile, its steps of bfloat16, and multiplications of
// bfloat16 that make one of float32.
constexpr std::int64_t kTileSide = 16, kTileDepth = 32, kTileProducts = 6;
}  // namespace

std::int64_t amx_flop_per_round() { return 2 * (2 * kTileSide) * (2 * kTileSide) * kTileDepth; }

double run_amx_chains([[maybe_unused]] std::int64_t rounds) {
#if defined(__x86_64__)
  require_target();
  check(uses_amx(),
        "run_amx_chains: needs the target amx, which this CPU lacks or MAKI_TARGET excludes; check uses_amx() first");
  alignas(64) std::uint16_t ones[kTileSide * kTileDepth];
  std::ranges::fill(ones, std::uint16_t{0x3F80});  // 1 in bfloat16
  alignas(64) float sums[4][kTileSide * kTileSide];
  const amx::TileConfig tiles;
  amx::zero<0>();
  amx::zero<1>();
  amx::zero<2>();
  amx::zero<3>();
  amx::load<4>(ones, 64);
  amx::load<5>(ones, 64);
  amx::load<6>(ones, 64);
  amx::load<7>(ones, 64);
  for (std::int64_t i = 0; i < kTileProducts * rounds; ++i) {
    amx::multiply<0, 4, 6>();
    amx::multiply<1, 4, 7>();
    amx::multiply<2, 5, 6>();
    amx::multiply<3, 5, 7>();
  }
  amx::store<0>(sums[0], 64);
  amx::store<1>(sums[1], 64);
  amx::store<2>(sums[2], 64);
  amx::store<3>(sums[3], 64);
  double total = 0;
  for (const auto& sum : sums) {
    for (const float x : sum) total += static_cast<double>(x);
  }
  const auto each = static_cast<double>(kTileProducts * kTileDepth * rounds);
  return total / (each * 4 * kTileSide * kTileSide);
#else
  fail("run_amx_chains: needs the target amx, which only x86-64 CPUs have; check uses_amx() first");
#endif
}

std::int64_t bf16_flop_per_round() {
  switch (bf16_unit()) {
    case Bf16Unit::amx:
      return kTileProducts * amx_flop_per_round();
    case Bf16Unit::pairs:
      return 4 * kPairChains * kPairsInVector;
    case Bf16Unit::matrices:
      return 2 * kPairChains * 2 * 2 * 4;
    case Bf16Unit::floats:
      break;
  }
  return fma_flop_per_round<float>();
}

double run_bf16_chains(std::int64_t rounds) {
  switch (bf16_unit()) {
    case Bf16Unit::amx:
      return run_amx_chains(rounds);
    case Bf16Unit::pairs:
      return MAKI_ON_TARGET(pair_chains)(rounds);
    case Bf16Unit::matrices:
      return MAKI_ON_TARGET(matrix_chains)(rounds);
    case Bf16Unit::floats:
      break;
  }
  return run_fma_chains<float>(rounds);
}

void stream_copy(std::int64_t n, const float* x, float* y) {
  require_target();
  MAKI_ON_TARGET(stream_f32)(n, x, y);
}

double stream_sum(std::int64_t n, const float* x) {
  require_target();
  return MAKI_ON_TARGET(sum_f32)(n, x);
}

template std::int64_t fma_flop_per_round<float>();
template std::int64_t fma_flop_per_round<double>();
template double run_fma_chains<float>(std::int64_t);
template double run_fma_chains<double>(std::int64_t);

}  // namespace maki::kernels
#endif
