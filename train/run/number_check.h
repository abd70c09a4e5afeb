// Checks the numbers of a checkpoint, so that no value or moment is loaded that training cannot have produced.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "train/run/container.h"

namespace maki {

/// Whether all numbers of a flat section are finite and, unless they may be negative, none is. Requires: a whole number
/// of numbers.
bool numbers_are_valid(Bytes numbers, DType dtype, bool may_be_negative);
/// What a section contains for which that is false, for messages.
const char* invalid_number(bool may_be_negative);

/// Checks a flat section that comes in pieces: all numbers are finite, and moments that cannot be negative are not. The
/// padding between tensors is zero, as in a new store, so that no data can hide there and the next checkpoint is
/// canonical.
class NumberCheck {
 public:
  /// For the section `values`. Requires: `file` outlives this object, here and below.
  NumberCheck(const ContainerReader& file, DType dtype);
  /// For the section of a moment.
  NumberCheck(const ContainerReader& file, DType dtype, const MomentLayout& moment);
  /// For another section of numbers without padding.
  NumberCheck(const ContainerReader& file, DType dtype, std::string section);

  /// Checks the next piece. Throws CorruptFile. Requires: the pieces come in order, each with a whole number of numbers
  /// (a rest of fewer bytes would not be looked at).
  void add(Bytes piece);

 private:
  struct Gap {
    std::string tensor;
    std::size_t begin, end;  // in bytes
  };
  void add_gap(const std::string& tensor, std::int64_t end);

  const ContainerReader& file_;
  std::string section_;
  DType dtype_;
  bool may_be_negative_;
  std::vector<Gap> gaps_;
  std::size_t at_ = 0;
};

}  // namespace maki
