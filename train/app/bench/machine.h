// The measured limits of this machine, arithmetic and bandwidth, against which speeds are compared (Williams, Waterman
// and Patterson 2009, "Roofline").
#pragma once

#include <cstdint>
#include <string_view>

#include "autograd/core/dtype.h"
#include "autograd/recording.h"

namespace maki {

/// Sets the number of threads for a scope, and restores the previous number at its end. Throws Error as set_threads()
/// does; no op may run when the number changes.
class ThreadTeam {
 public:
  explicit ThreadTeam(std::int64_t size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

 private:
  int before_;
};

/// The peak rate of threads() threads in floating-point operations per second: independent chains of multiply-adds in
/// registers, on the SIMD target in use. The best of the repetitions that fit into `seconds`. This and the following
/// functions throw std::logic_error if what was computed or moved is wrong.
double measure_peak_flop_per_second(DType dtype, double seconds = 0.3);

/// What multiplies the matrices of training: the vector units, AMX tiles or the instructions of AVX512_BF16.
enum class ProductUnit : std::uint8_t { multiply_adds, amx_tiles, bf16_pairs, bf16_matrices };
/// "multiply-adds", "AMX tiles", "pairs of bfloat16 numbers", "matrices of bfloat16 numbers"
std::string_view to_string(ProductUnit unit);
ProductUnit product_unit(DType dtype, Precision precision);

/// The peak rate of that unit, measured in the same way. In float32, tiles take six multiplications for each.
double measure_product_flop_per_second(DType dtype, Precision precision, double seconds = 0.3);

/// The peak rate in bytes per second, read and written together, at which threads() threads copy an array that no cache
/// holds to another. An array has 32 MiB (at most a 64th of the free memory, and at least 1 MiB). The best of five,
/// each with an array that was written past the caches and has not been read before, so that the size of the caches
/// does not matter.
double measure_copy_bytes_per_second();

/// The peak rate in bytes per second at which threads() threads read such an array. It is lower than the rate of a
/// copy, because stores do not wait for memory as loads do. The best of five.
double measure_read_bytes_per_second();

struct Machine {
  ProductUnit product_unit;
  double multiply_add_flop_per_second;  ///< of the vector units
  double peak_flop_per_second;          ///< of product_unit: the limit of products, and therefore of a training step
  double peak_flop_per_second_one_thread;
  double copy_bytes_per_second;
};
/// Measures all limits, for threads() threads. Releases the memory that the storage pool holds (storage_pool::trim()).
Machine measure_machine(DType dtype, Precision precision);

}  // namespace maki
