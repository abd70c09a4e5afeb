#include "autograd/core/cache_size.h"

#include <unistd.h>

namespace maki {
namespace {

std::int64_t size_from_system() {
#ifdef _SC_LEVEL2_CACHE_SIZE
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
