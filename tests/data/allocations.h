// What this program takes by operator new: how often, and the most bytes at once.
#pragma once

#include <cstdint>

namespace maki::tests {

std::int64_t allocations();

void start_peak();
/// The most bytes held at once since start_peak(), beyond those held then.
std::int64_t peak_bytes();
/// Bytes held now, beyond those held then.
std::int64_t held_bytes();

}  // namespace maki::tests
