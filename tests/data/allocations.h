// Counts the calls of operator new in this program and the bytes that it holds, as malloc_usable_size() gives them: a
// little more than was asked for. Memory that is aligned beyond the default, or comes from malloc() itself, is not
// counted.
#pragma once

#include <cstdint>

namespace maki::tests {

/// The number of allocations so far.
std::int64_t allocations();

/// Begins a measurement.
void start_peak();
/// The largest number of bytes held at once since start_peak(), less those held at that time. Exact only if one thread
/// allocates.
std::int64_t peak_bytes();
/// The number of bytes held now, less those held at start_peak().
std::int64_t held_bytes();

}  // namespace maki::tests
