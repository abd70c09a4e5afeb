// A matrix of 8-bit numbers with scales, in the order in which products of few rows read it.
#pragma once

#include <cstdint>

namespace maki {

/// kSteps numbers of each of kRows adjacent rows of a matrix. What lies outside of the matrix is 0.
struct Int8Block {
  static constexpr std::int64_t kRows = 16, kSteps = 64;
  float scales[kRows];
  std::int8_t codes[kSteps][kRows];
};

/// A matrix [out, in], such as the weight of a linear layer: one scale for each kSteps numbers of a row (Dettmers et
/// al. 2022, arXiv:2110.02861, quantize in blocks as well).
struct Int8Matrix {
  std::int64_t out = 0, in = 0;
  const Int8Block* blocks = nullptr;  ///< [panels()][groups()]

  std::int64_t panels() const { return (out + Int8Block::kRows - 1) / Int8Block::kRows; }
  std::int64_t groups() const { return (in + Int8Block::kSteps - 1) / Int8Block::kSteps; }
  std::int64_t bytes() const { return panels() * groups() * std::int64_t{sizeof(Int8Block)}; }
  /// The float32 number that an element stands for.
  float at(std::int64_t row, std::int64_t step) const {
    const Int8Block& block = panel(row / Int8Block::kRows)[step / Int8Block::kSteps];
    const std::int64_t r = row % Int8Block::kRows;
    return block.scales[r] * static_cast<float>(block.codes[step % Int8Block::kSteps][r]);
  }
  /// The blocks of rows [kRows · panel, kRows · (panel + 1)).
  const Int8Block* panel(std::int64_t panel) const { return blocks + panel * groups(); }
};

}  // namespace maki
