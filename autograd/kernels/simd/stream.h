// Stores past the caches, for results that would not stay there until they are read again.
#pragma once

#include <cstdint>

namespace maki::kernels {

/// Results of at least this many bytes are stored past the caches: then memory need not be read before it is written.
/// Two threads of an Intel Xeon write 18.5 GB/s through the caches and 46.7 past them. Attention backward of 16 × 6
/// heads of 256 × 64, whose gradients have 19 MB, took 53 ms for six layers of a training step through the caches and
/// 32 past them; with gradients of 3.1 MB (4 heads of 2,048 × 32) it took 22.7 and 20.8 ms for four layers. Results of
/// 1.2 MB gained nothing, and after 1.5 MB the next product, which reads them, took 1.2 times as long.
inline constexpr std::int64_t kStreamedBytes = std::int64_t{2} << 20;

/// Whether such stores pay on this CPU: on Intel's. On others it has not been measured.
bool streaming_pays();

/// For tests: streaming_pays() returns true while `on` is true.
void force_streaming(bool on);

/// Whether rows of T, `stride` elements apart and `bytes` long in total, are stored past the caches. Such stores need
/// rows that begin at cache lines.
template <class T>
bool goes_past_caches(const T* data, std::int64_t stride, std::int64_t bytes) {
  constexpr std::uintptr_t kLineBytes = 64;
  return bytes >= kStreamedBytes && reinterpret_cast<std::uintptr_t>(data) % kLineBytes == 0 &&
         static_cast<std::uintptr_t>(stride) * sizeof(T) % kLineBytes == 0 && streaming_pays();
}

}  // namespace maki::kernels
