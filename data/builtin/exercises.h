// The built-in exercises for sequence-to-sequence models: small tasks with exact answers, as lines of "source, tab,
// target". Line i is a function of the exercise, its size and i alone.
//
// Thread safety: all functions may be called on several threads at once.
#pragma once

#include <cstdint>
#include <string>

namespace maki {

enum class Exercise : std::uint8_t {
  copy,               ///< letters → the same letters
  reverse,            ///< letters → the letters in reverse order
  addition,           ///< a+b → the sum, the most significant digit first
  addition_backwards  ///< a+b → the sum, the least significant digit first
};

/// Lines in an exercise; addition of one or two digits has fewer, one per pair of numbers.
inline constexpr std::int64_t kMaxExerciseLines = 100'000;
inline constexpr std::int64_t kMaxLetters = 500, kMaxDigits = 9;

/// `size` is the largest number of letters (every line has 1 to `size` of them, drawn uniformly) or of digits of each
/// number; all pairs of numbers are different. Throws Error unless it is between 1 and kMaxLetters or kMaxDigits.
std::string make_exercise(Exercise exercise, std::int64_t size);

}  // namespace maki
