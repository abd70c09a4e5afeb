// Counts the calls of operator new in this program and the bytes that it holds.
#pragma once

#include <cstdint>

namespace maki::tests {

/// The number of allocations so far.
std::int64_t allocations();

/// Begins a measurement.
void start_peak();
/// The largest number of bytes held at once since start_peak(), less those held at that time.
std::int64_t peak_bytes();
/// The number of bytes held now, less those held at start_peak().
std::int64_t held_bytes();

}  // namespace maki::tests
