// The size of the cache by which kernels divide their work. No result depends on it.
#pragma once

#include <cstdint>

namespace maki {

/// Bytes of the level-2 cache of one core, as the system gives them; 512 KiB where it does not.
///
/// Thread safety: may be called from any thread.
std::int64_t level2_cache_bytes();

}  // namespace maki
