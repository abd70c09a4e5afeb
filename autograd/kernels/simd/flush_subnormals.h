// The floating-point mode of instructions for bfloat16, for code that must give the same bits without them.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace maki::kernels {

/// While it exists, instructions of the calling thread take subnormal numbers for 0 and return 0 in their place. (x86
/// and ARM; elsewhere it has no effect.) The compiler may move arithmetic across its ends, but not calls of functions
/// that are not inlined: what shall be affected must be one.
class FlushSubnormals {
 public:
#if defined(__x86_64__)
  FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kSubnormalsAreZero); }
  ~FlushSubnormals() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  FlushSubnormals() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(before_ | kFlushToZero));
  }
  ~FlushSubnormals() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kFlushToZero = 0x8000, kSubnormalsAreZero = 0x0040;  // bits FTZ and DAZ of MXCSR
  unsigned before_;
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24;  // bit FZ of FPCR
  std::uint64_t before_;
#endif
};

}  // namespace maki::kernels
