#include "autograd/kernels/gemm/bf16.h"

#include <string>

#include "autograd/kernels/simd/cpu_vendor.h"
#include "autograd/kernels/simd/target.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace maki::kernels {
namespace {

bool pairs_off = false;

// VDPBF16PS is as fast as a multiply-add of float32 vectors on AMD's CPUs (Zen 4: 234 instead of 117 GFLOP/s on one
// thread), and half as fast on Intel's (Emerald Rapids: 89 instead of 173), where it brings nothing.
bool has_fast_pairs() {
#if defined(__x86_64__)
  static const bool fast = [] {
    constexpr unsigned kAvx512Bf16 = 1U << 5;  // of EAX, CPUID(7, 1)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return is_amd() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvx512Bf16) != 0;
  }();
  return fast;
#else
  return false;
#endif
}

}  // namespace

void turn_off_bf16_pairs(bool off) { pairs_off = off; }

Bf16Unit bf16_unit() {
  const std::string name = target();
  if (name == "amx") return Bf16Unit::amx;
  return name == "avx3" && !pairs_off && has_fast_pairs() ? Bf16Unit::pairs : Bf16Unit::floats;
}

}  // namespace maki::kernels
