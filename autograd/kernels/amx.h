// The tile registers of AMX (Intel, "Architecture Instruction Set Extensions Programming Reference", chapter 3): eight
// of 16 rows of 64 bytes, and one instruction that multiplies two of them as bfloat16 and adds to a third in float32.
#pragma once

#include <cstddef>

namespace maki::kernels::amx {

/// Whether this CPU multiplies tiles of bfloat16 and the system lets this process use them (Linux 5.16 and later, asked
/// once).
bool available();

/// Lets available() say yes on a CPU without tiles. Only for tests that emulate the instructions
/// (tests/kernels/amx_emulator.h): anywhere else the first product ends the process with SIGILL.
void pretend_available(bool available);

/// While it lives, this thread has eight tiles of 16 rows of 64 bytes: 160 ns, so once a parallel region.
class Tiles {
 public:
  Tiles();
  ~Tiles();
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

#if defined(__x86_64__)

/// Rows `stride` bytes apart; stride 0 reads the same one 16 times.
template <int kTile>
inline void load(const void* rows, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void store(void* rows, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
/// sum [16, 16] += a [16, 32] b [32, 16], where row r of b holds rows 2r and 2r + 1 in pairs. An element is
/// sum + (even + odd): two chains of fused multiply-adds from 0, over the even and the odd of the 32, to nearest;
/// subnormal numbers count as 0.
template <int kSum, int kA, int kB>
inline void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

#endif

}  // namespace maki::kernels::amx
