// Positions: how a Transformer knows the order of its tokens.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "autograd/tensor.h"

namespace maki {

enum class Positions : std::uint8_t {
  learned,     ///< a vector for each position up to block_size is added to the token's: GPT-2
  sinusoidal,  ///< sinusoidal_positions() are added: Vaswani et al. 2017, arXiv:1706.03762, section 3.5
  rotary,      ///< queries and keys are rotated (rotary(), autograd/ops.h): Su et al. 2021, arXiv:2104.09864
  none         ///< the causal mask alone distinguishes positions: Kazemnejad et al. 2023, arXiv:2305.19466
};
inline constexpr std::array kPositions = {Positions::learned, Positions::sinusoidal, Positions::rotary,
                                          Positions::none};
/// "learned", "sinusoidal", "rotary" or "none".
const char* to_string(Positions positions);

/// Sinusoidal positions first … first + length − 1: [length, n_embd]. Columns 2i and 2i+1 of position t are the sine
/// and the cosine of the angle t / base^(2i/n_embd); if n_embd is odd, the last column is a sine. Section 3.5, where
/// the base is 10000. Throws Error unless base > 1.
Tensor sinusoidal_positions(std::int64_t length, std::int64_t n_embd, double base, DType dtype, std::int64_t first = 0);

/// The number of positions after which columns 2i and 2i+1 of sinusoidal positions repeat, for every pair i of columns:
/// 2π · base^(2i/n_embd). If n_embd is odd, the last pair is one column. For rotary positions, n_embd is the size of a
/// head. Throws Error unless base > 1.
std::vector<double> position_wavelengths(std::int64_t n_embd, double base);

/// The angles by which rotary() turns heads of D = head_size columns at positions first … first + length − 1:
/// [length, D]. Columns i and i + D/2 of position t are the cosine and the sine of t / base^(2i/D), which is computed
/// in float64, so that it is exact at long distances too. Su et al. 2021, eq. 15. Throws Error unless base > 1 and D is
/// even.
Tensor rotary_angles(std::int64_t length, std::int64_t head_size, double base, DType dtype, std::int64_t first = 0);

/// Rows of sinusoidal_positions() or rotary_angles(), which are computed when they are first needed and then kept.
///
/// Thread safety: may be used by several threads at once.
class PositionTable {
 public:
  using Function = Tensor (*)(std::int64_t length, std::int64_t width, double base, DType dtype, std::int64_t first);
  /// Throws Error for a width or a base that the function refuses.
  PositionTable(Function function, std::int64_t width, double base, DType dtype);

  /// Positions begin … end − 1: [end − begin, width], a part of the table, which must not be written to. All positions
  /// from 0 to end are kept, and up to twice as many as were kept before. Requires: 0 <= begin <= end.
  Tensor rows(std::int64_t begin, std::int64_t end) const;

 private:
  Function function_;
  std::int64_t width_;
  double base_;
  DType dtype_;
  mutable std::mutex mutex_;
  mutable Tensor held_;  // positions from 0 on
};

/// The rotary_angles() of a model's heads; null for other positions. Throws Error for rotary positions unless base > 1
/// and head_size is even.
std::shared_ptr<const PositionTable> rotary_table(Positions positions, std::int64_t head_size, double base,
                                                  DType dtype);

}  // namespace maki
