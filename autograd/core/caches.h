// The sizes of the data caches, by which kernels divide their work. No result depends on them.
#pragma once

#include <cstdint>

namespace maki {

struct Caches {
  std::int64_t level1 = 0, level2 = 0;  // of one core, in bytes
};

/// What the system says about the first processor; what it does not say is taken to be 32 KiB and 512 KiB.
///
/// Thread safety: may be called from any thread.
const Caches& caches();

}  // namespace maki
