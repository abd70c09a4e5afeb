#include "autograd/core/caches.h"

#include <unistd.h>

namespace maki {
namespace {

// Bytes of a cache, or `usual` where the system does not know them.
std::int64_t cache_size([[maybe_unused]] int name, std::int64_t usual) {
  const long known = sysconf(name);
  return known > 0 ? known : usual;
}

}  // namespace

const Caches& caches() {
  static const Caches known = {.level1 = cache_size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                               .level2 = cache_size(_SC_LEVEL2_CACHE_SIZE, 512 << 10)};
  return known;
}

}  // namespace maki
