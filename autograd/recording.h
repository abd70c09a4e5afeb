// The scopes that decide whether ops called on this thread are recorded (Recording), whether they round as if they were
// (AsRecorded), and how recorded products round their operands (ProductPrecision).
//
// Thread safety: a scope applies to the thread that created it and must be destroyed on it, in the opposite order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "autograd/core/check.h"

namespace maki {

class Tape;

/// Determines, together with the number of random ops called before it, what a random op of a recording draws. The
/// count starts at 0 when a recording begins on an empty tape; a recording that appends to a tape continues it.
struct RandomContext {
  std::uint64_t seed = 0, step = 0, micro_batch = 0;
};

/// While it exists, ops called on this thread are recorded on `tape`. Recordings may be nested; the innermost one
/// applies. If an exception ends its scope, everything recorded on the tape is removed, also by outer Recordings, so
/// that nothing of a failed step stays in memory; the gradients of tensors watched in an earlier step are kept.
///
/// Requires: the tape outlives the Recording. Throws Error if the tape is running backward.
class Recording {
 public:
  /// Uses a context whose `step` is the number of recordings begun this way on this tape before it, and whose other
  /// members are 0, so that each draws different random numbers. A run that must continue exactly after a restart
  /// passes its own context instead.
  explicit Recording(Tape& tape);
  /// Uses the given context; the same context on an empty tape gives the same dropout masks.
  Recording(Tape& tape, const RandomContext& random);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Tape& tape_;
  Tape* const previous_;
  RandomContext outer_random_;
  const int exceptions_;  // in flight when the scope began
};

/// While it exists, ops called on this thread round as they do in a Recording, although nothing is recorded: an
/// evaluation computes the same loss as training, at the same speed. Only products make a difference, and not on every
/// CPU: those with AMX, see docs/decisions/016-amx.md. Without Recording and AsRecorded, they use the algorithm of all
/// CPUs, which is as fast for the few rows of generation.
class AsRecorded {
 public:
  AsRecorded();
  ~AsRecorded();
  AsRecorded(const AsRecorded&) = delete;
  AsRecorded& operator=(const AsRecorded&) = delete;

 private:
  bool before_;
};

/// Whether a Recording or an AsRecorded exists on this thread.
bool rounds_as_recorded();

/// What the operands of matrix products and attention are rounded to before they are multiplied.
enum class Precision : std::uint8_t { float32, bfloat16 };
inline constexpr std::array kPrecisions = {Precision::float32, Precision::bfloat16};
constexpr const char* to_string(Precision precision) {
  return precision == Precision::bfloat16 ? "bfloat16" : "float32";
}
/// The inverse of to_string(). Throws Error for any other name.
constexpr Precision precision_named(std::string_view name) {
  for (const Precision precision : kPrecisions) {
    if (name == to_string(precision)) return precision;
  }
  fail("precision: must be float32 or bfloat16; got {}", name);
}

/// While it exists, recorded matrix products and attention of float32 tensors (matmul, linear, linear_cross_entropy,
/// attention) that are called on this thread round their operands to `precision`: to nearest, ties to even; subnormal
/// numbers become 0. The gradient of a bias sums rounded numbers as well. Sums stay float32, and so does every tensor.
/// The innermost scope applies; without one, nothing is rounded. A backward pass rounds like the recording that it
/// differentiates, so the precision must be the same during the whole recording: otherwise an op that is recorded
/// throws Error, as does a Recording on a tape that was begun with another precision. Nothing else changes: not ops on
/// float64 tensors, not those outside a Recording and AsRecorded, not relative or linear attention. Operands are
/// rounded alike on every CPU; the order of the sums depends on whether it has instructions for bfloat16.
class ProductPrecision {
 public:
  explicit ProductPrecision(Precision precision);
  ~ProductPrecision();
  ProductPrecision(const ProductPrecision&) = delete;
  ProductPrecision& operator=(const ProductPrecision&) = delete;

  /// The precision that applies on this thread.
  static Precision current();

 private:
  Precision before_;
};

/// Whether an op of float32 tensors that is called on this thread now rounds the operands of its products to bfloat16:
/// it is recorded, or rounds as if it were, and the precision is bfloat16.
bool rounds_operands();

}  // namespace maki
