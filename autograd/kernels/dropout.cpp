#include "autograd/kernels/dropout.h"

#include <algorithm>

#include "autograd/core/parallel.h"
#include "autograd/kernels/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/dropout.cpp"
#include <hwy/foreach_target.h>

#include "autograd/kernels/simd/partial-inl.h"
#include "autograd/kernels/simd/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace maki::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Random words drawn at a time: 4 KiB, which stays in the level-1 cache. philox_words() may fill the buffer up to a
// multiple of 64 blocks, each of four words.
constexpr std::int64_t kWordsAtATime = 1024;
static_assert(kWordsAtATime % (64 * 4) == 0);

// One vector of the mask: 0 where the random word is below `threshold`, else `factor`.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> Mask(D d, const std::uint32_t* words, std::uint32_t threshold, T factor) {
  const hn::Rebind<std::uint32_t, D> d32;
  const auto drawn = hn::LoadU(d32, words);
  if constexpr (sizeof(T) == 4) {
    return hn::IfThenZeroElse(hn::RebindMask(d, hn::Lt(drawn, hn::Set(d32, threshold))), hn::Set(d, factor));
  } else {
    const hn::RebindToSigned<D> d64;  // a signed comparison is correct, because zero-extended words are not negative
    const auto wide = hn::BitCast(d64, hn::PromoteTo(hn::RebindToUnsigned<D>(), drawn));
    const auto below = hn::Lt(wide, hn::Set(d64, static_cast<std::int64_t>(threshold)));
    return hn::IfThenZeroElse(hn::RebindMask(d, below), hn::Set(d, factor));
  }
}

// y (+)= x · mask for the elements [begin, end), where `begin` is a multiple of 4, because Philox draws four words at a
// time. The last vector of a row may read words beyond the row; they meet lanes that are never stored.
template <class T>
void drop(std::int64_t begin, std::int64_t end, const T* x, std::uint32_t threshold, T factor,
          const RandomStream& stream, Sink<T> y) {
  HWY_ALIGN std::uint32_t words[kWordsAtATime];
  for (; begin < end; begin += kWordsAtATime) {
    const std::int64_t n = std::min(kWordsAtATime, end - begin);
    philox_words(stream, static_cast<std::uint64_t>(begin / 4), static_cast<std::uint64_t>((n + 3) / 4), words);
    const std::uint32_t* const drawn = words;
    for_each_vector<T>(n, [=](const auto& at, std::int64_t i) HWY_ATTR {
      const auto mask = Mask(at.d, drawn + i, threshold, factor);
      put_vector(at, y, begin + i, hn::Mul(at.Load(x + begin + i), mask));
    });
  }
}

MAKI_KERNEL(drop);

}  // namespace maki::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maki::kernels {

MAKI_EXPORT(drop);

template <class T>
void dropout(std::int64_t n, const T* x, double p, const RandomStream& stream, Sink<T> y) {
  const auto kernel = MAKI_DISPATCH(drop, T);
  const auto threshold = static_cast<std::uint32_t>(p * 0x1p32);
  const T factor = static_cast<T>(1 / (1 - p));
  // Blocks of 1024 elements, each of about 4096 elementary operations, are divided among the threads. A block must be a
  // multiple of 4 elements; its size changes no bit.
  parallel_ranges(ceil_div(n, 1024), 4096, [&](std::int64_t begin, std::int64_t end) {
    kernel(begin * 1024, std::min(n, end * 1024), x, threshold, factor, stream, y);
  });
}
template void dropout(std::int64_t, const float*, double, const RandomStream&, Sink<float>);
template void dropout(std::int64_t, const double*, double, const RandomStream&, Sink<double>);

}  // namespace maki::kernels
#endif
