// What replaces the allocation functions of this program, on every thread: operator new, malloc() and its relatives,
// and mmap().
#pragma once

namespace maki::tests {

/// The calls of each kind that were made during a time.
struct Allocations {
  int news = 0, mallocs = 0, mmaps = 0;
};
void begin_counting();
Allocations end_counting();

/// Allocations, of any kind but mmap(), that have not been freed.
long living_allocations();

/// From now on, allocation number n of C++ code, from 0, fails, and no other: operator new and aligned_alloc(). What C
/// libraries allocate does not count, and what toml++ does never fails.
void fail_allocation(long n);
/// Ends that, and returns whether the allocation was reached.
bool has_failed();

}  // namespace maki::tests
