// Random bits that nobody can repeat: for seeds that the user did not choose, names of temporary files, and secrets.
// What training draws is a function of its seed instead (autograd/core/philox.h).
#pragma once

#include <cstdint>

namespace maki {

/// 64 random bits from the system. Throws Error if it has none to give.
std::uint64_t system_random();
/// A fresh seed that is short enough to type: 0 to 999,999,999.
std::int64_t fresh_seed();

}  // namespace maki
