// What this machine can do at most: the roofs under which a measured speed is read (Williams, Waterman and Patterson
// 2009, "Roofline").
#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/core/dtype.h"

namespace maki {

/// A team size for a scope.
class Team {
 public:
  explicit Team(std::int64_t size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  int before_;
};

/// The most floating-point operations per second on threads() threads: independent chains of multiply-adds in
/// registers, on the SIMD target in use. The best of what fits into a third of a second.
double measure_peak_flop_per_second(DType dtype);

/// The same of float32 products on the tiles of AMX, six multiplications of bfloat16 for one of float32. Throws unless
/// kernels::uses_amx().
double measure_tile_flop_per_second();

/// The most bytes a second, read and written together, that threads() threads copy between two arrays which together
/// are at least twice the last-level cache (less where memory is short). The best of five.
double measure_copy_bytes_per_second();

/// The most bytes a second that threads() threads read from such an array. Less than a copy moves: its stores wait for
/// nobody. The best of five.
double measure_read_bytes_per_second();

/// The most memory this process has held resident, in bytes.
std::int64_t peak_memory_bytes();

struct Machine {
  double multiply_add_flop_per_second;  ///< of the vector units
  double tile_flop_per_second;          ///< of AMX; 0: the products of this type do not use it
  double peak_flop_per_second_of_one;   ///< the limit of products, on one thread: of the tiles where they are used
  double copy_bytes_per_second;

  /// The limit of products, and so of a training step.
  double peak_flop_per_second() const { return std::max(multiply_add_flop_per_second, tile_flop_per_second); }
};
/// All of it, for threads() threads.
Machine measure_machine(DType dtype);

}  // namespace maki
