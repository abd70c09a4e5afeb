// Operands of a kernel in one type. They hold the same numbers in float32 and float64, so that a run in float64
// verifies the run in float32.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "autograd/core/sink.h"
#include "autograd/tensor.h"

namespace maki::bench {

/// Creates and owns the operands of a benchmark and counts the bytes that one run must move.
template <class T>
class Operands {
 public:
  using Type = T;

  /// n numbers that the kernel reads, uniform in [low, high).
  const T* in(std::int64_t n, double low = -2, double high = 2) {
    bytes_ += bytes(n);
    return random(n, low, high);
  }
  /// n numbers in [-2, 2) of a table of which a run reads only some rows, so that its bytes are not counted.
  const T* table(std::int64_t n) { return random(n, -2, 2); }
  /// n elements that the kernel writes and verify() compares.
  T* out(std::int64_t n) {
    bytes_ += bytes(n);
    outputs_.push_back(zeros({n}, dtype_of<T>()));
    return outputs_.back().template data<T>();
  }
  Sink<T> sink(std::int64_t n) { return {out(n), false}; }
  /// n numbers that the kernel reads and overwrites and verify() compares.
  T* inout(std::int64_t n, double low = -2, double high = 2) {
    bytes_ += 2 * bytes(n);
    T* const data = random(n, low, high);
    outputs_.push_back(held_.back());
    return data;
  }
  /// n random ids in [0, bound).
  const std::int32_t* ids(std::int64_t n, std::int64_t bound) {
    held_.push_back(empty({n}, DType::int32));
    const RandomStream stream(++seed_, RandomPurpose::test, "ids");
    std::uint64_t i = 0;
    for (std::int32_t& id : held_.back().values<std::int32_t>())
      id = static_cast<std::int32_t>(stream.below(i++, static_cast<std::uint64_t>(bound)));
    return held_.back().data<std::int32_t>();
  }
  /// n zeros that are neither counted nor compared.
  template <class U = T>
  U* scratch(std::int64_t n) {
    held_.push_back(zeros({n}, dtype_of<U>()));
    return held_.back().template data<U>();
  }

  /// The minimum number of bytes that one run moves: each operand is read once and written once, as applicable.
  double bytes() const { return bytes_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  static double bytes(std::int64_t n) { return static_cast<double>(n * std::int64_t{sizeof(T)}); }
  T* random(std::int64_t n, double low, double high) {
    held_.push_back(empty({n}, dtype_of<T>()));
    const RandomStream stream(++seed_, RandomPurpose::test, "operand");
    std::uint64_t i = 0;
    // Rounded to float32 in both types, so that both runs read the same numbers.
    for (T& x : held_.back().values<T>()) {
      const double unit = 0x1p-32 * static_cast<double>(stream.bits(i++));
      x = static_cast<T>(static_cast<float>(low + (high - low) * unit));
    }
    return held_.back().template data<T>();
  }

  std::vector<Tensor> held_, outputs_;
  double bytes_ = 0;
  std::uint64_t seed_ = 0;
};

/// Throws std::logic_error if an output (float32) is not finite or differs from the expected one (float64) by more than
/// 2e-5 of its norm.
inline void verify(const std::string& name, const std::vector<Tensor>& outputs, const std::vector<Tensor>& expected) {
  check<std::logic_error>(!outputs.empty(), "{}: has no output to verify", name);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    double gap = 0, norm = 0;
    for (std::int64_t i = 0; i < outputs[k].numel(); ++i) {
      const double right = expected[k].data<double>()[i],
                   off = static_cast<double>(outputs[k].data<float>()[i]) - right;
      gap += off * off;
      norm += right * right;
    }
    check<std::logic_error>(norm > 0 && std::sqrt(gap) <= 2e-5 * std::sqrt(norm),
                            "{}: output {} differs from its float64 result by {:.2g} of the norm", name, k,
                            std::sqrt(gap / norm));
  }
}

}  // namespace maki::bench
