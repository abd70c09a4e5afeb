// One float32 matrix product of random operands, to be timed: computed by maki's kernel or, in bench/, by another
// library on the same memory.
#pragma once

#include <cstdint>
#include <string>

#include "autograd/kernels/gemm/gemm.h"
#include "autograd/recording.h"
#include "autograd/tensor.h"

namespace maki {

/// The shapes of C [m, n] = op(A) [m, k] · op(B) [k, n], where op transposes or not.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;

  double flop() const { return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  /// "NN", "NT", "TN" or "TT": T if the operand is stored transposed.
  std::string transpose() const;
};
/// Parses a shape "M,N,K", such as "768,128,128", whole numbers from 1 to 1,000,000, and a transpose, such as "NT".
/// Throws Error for anything else.
GemmShape parse_gemm_shape(const std::string& text, const std::string& transpose);

/// The product counts as recorded (Gemm::recorded), so that it runs on AMX where those of training do.
class GemmBench {
 public:
  /// The operands are uniform in [−1, 1), the same each time; C is NaN until run(). packed: op(B) is prepacked, as is
  /// done for weights that are used in many products; the time of packing is not part of run(). precision: what the
  /// product rounds its operands to (ProductPrecision).
  explicit GemmBench(const GemmShape& shape, bool packed = false, Precision precision = Precision::float32);

  /// Computes C = op(A) · op(B).
  void run();
  /// Compares entries of C with sums of the rounded operands in double precision: all if there are at most 4096,
  /// otherwise the corners and a random sample of as many. Throws std::logic_error, naming `who`, at the first whose
  /// error exceeds what rounding allows.
  void verify(const char* who = "maki") const;
  /// Fills C with NaN, so that verify() cannot pass on the result of an earlier run().
  void spoil();

  const GemmShape& shape() const { return shape_; }
  /// Whether the kernels compute this product on AMX tiles.
  bool on_tiles() const;
  const float* a() const { return a_.data<float>(); }
  const float* b() const { return b_.data<float>(); }
  float* c() { return c_.data<float>(); }
  std::int64_t lda() const { return shape_.a_transposed ? shape_.m : shape_.k; }
  std::int64_t ldb() const { return shape_.b_transposed ? shape_.k : shape_.n; }

 private:
  void verify_entry(const char* who, std::int64_t i, std::int64_t j) const;

  GemmShape shape_;
  Tensor a_, b_, c_, packed_;
  kernels::Gemm<float> gemm_;
  Storage scratch_;
  std::int64_t scratch_bytes_;
};

}  // namespace maki
