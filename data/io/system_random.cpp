#include "data/io/system_random.h"

#include <cerrno>
#include <cstring>
#include <sys/random.h>

#include "autograd/core/check.h"

namespace maki {

std::uint64_t system_random() {
  std::uint64_t bits = 0;
  // Not std::random_device: linked statically from GCC 12, it needs glibc 2.36.
  if (getentropy(&bits, sizeof bits) != 0) fail("the system gives no random numbers ({})", std::strerror(errno));
  return bits;
}

std::int64_t fresh_seed() { return static_cast<std::int64_t>(system_random() % 1'000'000'000); }

}  // namespace maki
