#include "nn/positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "autograd/core/check.h"

namespace maki {
namespace {

// base^(−pair · 2 / width), the angle between consecutive positions.
double frequency(std::int64_t pair, std::int64_t width, double base) {
  return std::pow(base, -static_cast<double>(2 * pair) / static_cast<double>(width));
}

void check_base(double base) {
  check(base > 1, "positions: the base of sinusoidal and rotary positions must be above 1; got {}", base);
}

// Calls put(t, pair, angle) for every position first + t and every pair of columns.
template <class Put>
void for_each_angle(std::int64_t length, std::int64_t width, double base, std::int64_t first, const Put& put) {
  check_base(base);
  for (std::int64_t pair = 0; 2 * pair < width; ++pair) {
    const double step = frequency(pair, width, base);
    for (std::int64_t t = 0; t < length; ++t) put(t, pair, static_cast<double>(first + t) * step);
  }
}

}  // namespace

const char* to_string(Positions positions) {
  switch (positions) {
    case Positions::learned:
      return "learned";
    case Positions::sinusoidal:
      return "sinusoidal";
    case Positions::rotary:
      return "rotary";
    case Positions::none:
      return "none";
  }
  return "";
}

Tensor sinusoidal_positions(std::int64_t length, std::int64_t n_embd, double base, DType dtype, std::int64_t first) {
  Tensor table = empty({length, n_embd}, dtype);
  dispatch(dtype, [&]<class T>() {
    for_each_angle(length, n_embd, base, first, [&](std::int64_t t, std::int64_t pair, double angle) {
      T* const row = table.data<T>() + t * n_embd;
      row[2 * pair] = static_cast<T>(std::sin(angle));
      if (2 * pair + 1 < n_embd) row[2 * pair + 1] = static_cast<T>(std::cos(angle));
    });
  });
  return table;
}

std::vector<double> position_wavelengths(std::int64_t n_embd, double base) {
  check_base(base);
  std::vector<double> wavelengths;
  for (std::int64_t pair = 0; 2 * pair < n_embd; ++pair)
    wavelengths.push_back(2 * std::numbers::pi / frequency(pair, n_embd, base));
  return wavelengths;
}

Tensor rotary_angles(std::int64_t length, std::int64_t head_size, double base, DType dtype, std::int64_t first) {
  check(head_size % 2 == 0, "positions: rotary positions need heads of an even number of columns; got {}", head_size);
  Tensor table = empty({length, head_size}, dtype);
  dispatch(dtype, [&]<class T>() {
    for_each_angle(length, head_size, base, first, [&](std::int64_t t, std::int64_t pair, double angle) {
      T* const row = table.data<T>() + t * head_size;
      row[pair] = static_cast<T>(std::cos(angle));
      row[pair + head_size / 2] = static_cast<T>(std::sin(angle));
    });
  });
  return table;
}

PositionTable::PositionTable(Function function, std::int64_t width, double base, DType dtype)
    : function_(function), width_(width), base_(base), dtype_(dtype), held_(function(0, width, base, dtype, 0)) {}

// The table grows at least to twice its length and is then computed anew, so generating token after token computes
// fewer than four rows per token.
Tensor PositionTable::rows(std::int64_t begin, std::int64_t end) const {
  const std::lock_guard lock(mutex_);
  if (const std::int64_t held = held_.shape()[0]; end > held) {
    held_ = function_(std::max(end, 2 * held), width_, base_, dtype_, 0);
  }
  return held_.slice_flat(begin * width_, {end - begin, width_});
}

std::shared_ptr<const PositionTable> rotary_table(Positions positions, std::int64_t head_size, double base,
                                                  DType dtype) {
  if (positions != Positions::rotary) return nullptr;
  return std::make_shared<PositionTable>(rotary_angles, head_size, base, dtype);
}

}  // namespace maki
