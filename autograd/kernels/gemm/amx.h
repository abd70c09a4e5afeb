// The instructions of AMX that maki uses (Intel, "Architecture Instruction Set Extensions Programming Reference",
// chapter 3). AMX has eight tile registers of 16 rows of 64 bytes, and an instruction that multiplies two of them as
// bfloat16 matrices and adds the product to a third in float32.
#pragma once

#include <cstddef>

namespace maki::kernels::amx {

/// Whether this CPU multiplies bfloat16 tiles and the system lets this process use them (Linux 5.16 or later). The
/// first call asks the system for permission; later calls repeat its answer. False except on x86-64 Linux.
bool available();

/// Makes available() return true on a CPU without AMX; false undoes this. Only for tests that emulate the instructions
/// (tests/kernels/amx_emulator.h); otherwise the first product ends the process with SIGILL. The target in use changes
/// with the next force_target() only (simd/target.h). Thread safety: none; call it while no other thread uses the
/// library.
void force_available_for_tests(bool available);

/// Configures the calling thread's eight tile registers as 16 rows of 64 bytes each for as long as it lives. This takes
/// 160 ns, so do it once per parallel region. At most one may exist per thread: the destructor releases all registers.
class TileConfig {
 public:
  TileConfig();
  ~TileConfig();
  TileConfig(const TileConfig&) = delete;
  TileConfig& operator=(const TileConfig&) = delete;
};

#if defined(__x86_64__)

// All of these require that the calling thread holds a TileConfig.

/// Loads a tile register from 16 rows, `stride` bytes apart; stride 0 reads the same row 16 times.
template <int kTile>
inline void load(const void* rows, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}
/// Stores a tile register to 16 rows, `stride` bytes apart.
template <int kTile>
inline void store(void* rows, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
/// sum [16, 16] += a [16, 32] b [32, 16], all in tile registers; row r of b's register holds rows 2r and 2r + 1 of b,
/// their elements in pairs. An element becomes sum + (even + odd), where even and odd are chains of fused multiply-adds
/// from 0 over the even and the odd steps of the 32. It rounds to nearest and treats subnormal numbers as 0.
template <int kSum, int kA, int kB>
inline void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

#endif

}  // namespace maki::kernels::amx
