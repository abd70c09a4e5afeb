#include "autograd/kernels/simd/cpu_vendor.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace maki::kernels {
namespace {

bool is_vendor([[maybe_unused]] const char* name) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid(0, a, b, c, d);
  const unsigned found[3] = {b, d, c};
  return std::memcmp(found, name, sizeof(found)) == 0;
#else
  return false;
#endif
}

}  // namespace

bool is_intel() {
  static const bool found = is_vendor("GenuineIntel");
  return found;
}
bool is_amd() {
  static const bool found = is_vendor("AuthenticAMD");
  return found;
}

}  // namespace maki::kernels
