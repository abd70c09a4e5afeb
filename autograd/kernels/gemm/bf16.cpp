#include "autograd/kernels/gemm/bf16.h"

#include <string>

#include "autograd/kernels/simd/cpu_vendor.h"
#include "autograd/kernels/simd/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace maki::kernels {
namespace {

bool instructions_off = false;

// VDPBF16PS is as fast as a multiply-add of float32 vectors on AMD's CPUs (Zen 4: 234 instead of 117 GFLOP/s on one
// thread), and half as fast on Intel's (Emerald Rapids: 89 instead of 173), where it brings nothing. BFMMLA does the
// work of four multiply-adds.
bool has_fast_instructions() {
#if defined(__x86_64__)
  static const bool fast = [] {
    constexpr unsigned kAvx512Bf16 = 1U << 5;  // of EAX, CPUID(7, 1)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return is_amd() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvx512Bf16) != 0;
  }();
  return fast;
#elif defined(__APPLE__)
  static const bool fast = [] {
    int has = 0;
    std::size_t size = sizeof has;
    return sysctlbyname("hw.optional.arm.FEAT_BF16", &has, &size, nullptr, 0) == 0 && has != 0;
  }();
  return fast;
#elif defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kBf16 = 1UL << 14;  // of AT_HWCAP2 (Linux, Documentation/arch/arm64/elf_hwcaps.rst)
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
#else
  return false;
#endif
}

}  // namespace

void turn_off_bf16_instructions(bool off) { instructions_off = off; }

Bf16Unit bf16_unit() {
  const std::string name = target();
  if (name == "amx") return Bf16Unit::amx;
  if (instructions_off || !has_fast_instructions()) return Bf16Unit::floats;
  return name == "avx3" ? Bf16Unit::pairs : name == "neon" ? Bf16Unit::matrices : Bf16Unit::floats;
}

std::string_view bf16_instructions() {
  switch (bf16_unit()) {
    case Bf16Unit::pairs:
      return "AVX512_BF16";
    case Bf16Unit::matrices:
      return "BFMMLA";
    case Bf16Unit::amx:
    case Bf16Unit::floats:
      break;
  }
  return "";
}

}  // namespace maki::kernels
