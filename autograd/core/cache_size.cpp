#include "autograd/core/cache_size.h"

#if defined(__APPLE__)
#include <cstddef>
#include <sys/sysctl.h>
#else
#include <unistd.h>
#endif

namespace maki {
namespace {

#if defined(__APPLE__)
std::int64_t number_of(const char* name) {
  std::int64_t number = 0;
  std::size_t size = sizeof number;
  return sysctlbyname(name, &number, &size, nullptr, 0) == 0 ? number : 0;
}
#endif

std::int64_t size_from_system() {
#if defined(__APPLE__)
  // Several of the fast cores share one.
  const std::int64_t cores = number_of("hw.perflevel0.cpusperl2");
  return cores > 0 ? number_of("hw.perflevel0.l2cachesize") / cores : number_of("hw.l2cachesize");
#elif defined(_SC_LEVEL2_CACHE_SIZE)
  return sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  return 0;
#endif
}

}  // namespace

std::int64_t level2_cache_bytes() {
  static const std::int64_t known = size_from_system();
  return known > 0 ? known : 512 << 10;
}

}  // namespace maki
